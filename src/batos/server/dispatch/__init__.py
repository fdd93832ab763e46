"""The dispatcher: what each verb of the protocol does with the UVM."""
