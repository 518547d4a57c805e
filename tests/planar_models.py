"""What several models of the tests in the plane begin with."""

# Links in a row, of lengths ``l``: of chains and four-bar linkages.
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

# Two free bodies.
TWO_BODIES = {
    "fsm_dyn": 1,
    "parameters": {"ra": 0.35},
    "coordinates": ["x", "y", "q", "v", "w", "p"],
    "frames": {"A": {"rotate": {"z": "q"}}, "B": {"rotate": {"z": "p"}}},
    "points": {
        "Ao": {"from": "O", "at": "x*N.x + y*N.y"},
        "Bo": {"from": "O", "at": "v*N.x + w*N.y"},
    },
    "bodies": {
        "a": {"frame": "A", "center": "Ao", "mass": 1, "inertia": {"zz": 1}},
        "b": {"frame": "B", "center": "Bo", "mass": 1, "inertia": {"zz": 1}},
    },
}
