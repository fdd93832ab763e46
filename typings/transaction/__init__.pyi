# Only the explicit manager: the module's thread-local default is never used.
from transaction._manager import TransactionManager as TransactionManager
from transaction._transaction import Transaction as Transaction
