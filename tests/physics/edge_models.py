"""Models of shapes at the edges of their geometry: a thin disk, a cord from its anchor, concentric circles."""

COIN = """
fsm_dyn: 1
name: coin
parameters: {m: 5 g, R: 12 mm, a: 0.25 rad}
coordinates: {x: m, y: m, z: m}
frames: {F: {parent: N, euler_parameters: p}}
points: {S: {from: O, at: x*N.x + y*N.y + z*N.z}}
bodies: {coin: {frame: F, center: S, mass: m, inertia: {xx: m*R**2/4, yy: m*R**2/4, zz: m*R**2/2}}}
speeds:
  vx: rate(x)
  vy: rate(y)
  vz: rate(z)
  w1: "dot(omega(F), F.x)"
  w2: "dot(omega(F), F.y)"
  w3: "dot(omega(F), F.z)"
shapes:
  rim: {disk: {frame: F, center: S, axis: F.z, radius: R}}
  table: {plane: {from: O}, side: N.z}
contacts: {touch: {between: [rim, table], friction: 0.4}}
loads: [{gravity: -9.81 m/s^2*N.z}]
initial: {z: R*sin(2*a), p0: cos(a), p1: sin(a)}
"""

CORD = """
fsm_dyn: 1
name: bungee
parameters: {v: 0 m/s}
coordinates: {x: m, y: m}
points: {P: {from: O, at: x*N.x + y*N.y}}
bodies: {jumper: {center: P, mass: 70 kg}}
contacts: {cord: {gap: "10 m - norm(pos(P))", compliant: {stiffness: 100 N/m}}}
loads: [{gravity: -9.81 m/s^2*N.y}]
initial: {x_dot: v}
"""

RING = """
fsm_dyn: 1
name: ring
coordinates: {x: m, y: m}
points: {P: {from: O, at: x*N.x + y*N.y}}
bodies: {pin: {center: P, mass: 1 kg}}
shapes:
  pin_rim: {circle: {center: P, radius: 4 mm}}
  hole: {circle: {center: O, radius: 5 mm}, side: inside}
contacts: {play: {between: [pin_rim, hole]}}
loads: [{gravity: -9.81 m/s^2*N.y}]
"""
