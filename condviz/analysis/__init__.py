"""What scores and embeddings show: comparison, attribution, routers, geometry, maps; as frozen results."""
