"""The papers' tables: their rows carried out, what architectures cost, and the pages made of them."""
