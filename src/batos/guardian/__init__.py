"""The guardian: audits the source of generated methods, and says every fault that it finds."""
