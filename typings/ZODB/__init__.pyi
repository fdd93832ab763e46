from ZODB.DB import DB as DB
from ZODB.DB import connection as connection
