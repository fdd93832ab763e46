from ZODB._storage import Storage

class MappingStorage(Storage):
    def __init__(self, name: str = ...) -> None: ...
