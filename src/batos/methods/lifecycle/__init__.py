"""The lifecycle of methods: installed, compared with the intent, retired, rolled back."""
