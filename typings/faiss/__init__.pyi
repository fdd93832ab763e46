from typing import Any

from numpy.typing import NDArray

METRIC_INNER_PRODUCT: int

class ScalarQuantizer:
    QT_fp16: int

class _Codes:
    def data(self) -> Any: ...

class IDSelectorBitmap:
    def __init__(self, bits: NDArray[Any]) -> None: ...

class SearchParameters:
    def __init__(self, *, sel: IDSelectorBitmap | None = ...) -> None: ...

class IndexScalarQuantizer:
    is_trained: bool
    codes: _Codes

    def __init__(self, dimensions: int, quantizer: int, metric: int) -> None: ...
    def add_sa_codes(self, codes: NDArray[Any]) -> None: ...
    def search(
        self, queries: NDArray[Any], most: int, *, params: SearchParameters | None = ...
    ) -> tuple[NDArray[Any], NDArray[Any]]: ...

def rev_swig_ptr(pointer: Any, count: int) -> NDArray[Any]: ...

def omp_set_num_threads(threads: int) -> None: ...
