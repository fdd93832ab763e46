"""The voices of the emulator: the invented one, and the one of a real model that llama.cpp runs."""
