from typing import Any

class HistoricalStorageAdapter:
    _storage: Any
