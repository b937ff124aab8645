"""From a question to the passages that matter: arms, fusion, rerank, pack, under one deadline."""
