"""Three links in a row in the plane, of lengths ``l``: what models of chains and of four-bar linkages begin with."""

THREE_LINKS = {
    "coordinates": ["a", "b", "c"],
    "frames": {
        "A": {"parent": "N", "rotate": {"z": "a"}},
        "B": {"parent": "A", "rotate": {"z": "b"}},
        "C": {"parent": "B", "rotate": {"z": "c"}},
    },
    "points": {
        "P": {"from": "O", "at": "l[0]*A.x"},
        "Q": {"from": "P", "at": "l[1]*B.x"},
        "R": {"from": "Q", "at": "l[2]*C.x"},
    },
}
