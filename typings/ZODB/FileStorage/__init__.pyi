from ZODB.FileStorage.FileStorage import FileIterator as FileIterator
from ZODB.FileStorage.FileStorage import FileStorage as FileStorage
