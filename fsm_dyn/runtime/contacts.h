/* Contacts at one event time: contact problems, impacts, and the selection of the next mode. */

#ifndef FSM_CONTACTS_H
#define FSM_CONTACTS_H

#include "run.h"
#include "algebra.h"

/* ---- the contact problem ---- */

/* What a contact can choose in a contact problem; a candidate is one choice for every contact. */
enum fsm_choice {
    FSM_CHOICE_OPEN,
    FSM_CHOICE_HOLD,        // closed, and sticks: normal and tangent rows held
    FSM_CHOICE_FORWARD,     // slides with direction +1
    FSM_CHOICE_BACKWARD,    // slides with direction -1
    FSM_CHOICE_PARTED_HOLD, // opens under the normal impulse given (Poisson's expansion), and friction stops the slip
    FSM_CHOICE_PARTED_FORWARD,  // opens likewise, slides with direction +1
    FSM_CHOICE_PARTED_BACKWARD, // opens likewise, slides with direction -1
    FSM_CHOICE_UNDER_FORWARD,   // slides, a slot pressed on its other face (normal force negative)
    FSM_CHOICE_UNDER_BACKWARD,
    FSM_CHOICE_COUNT
};

/* The contact law most violated by a candidate. */
enum fsm_violation {
    FSM_LAW_KEPT,
    FSM_LAW_TENSION,
    FSM_LAW_PENETRATION_RATE,
    FSM_LAW_FRICTION_EXCEEDED,
    FSM_LAW_SLIP_AGAINST_FRICTION,
    FSM_LAW_NO_SOLUTION,          // redundant rows are inconsistent
    FSM_LAW_MOTION_INDETERMINATE, // the forces are indeterminate, and the motion with them
    FSM_LAW_EXCLUDED,             // all contacts whose guards fired together keep their states
    FSM_LAW_SHARE_LEFT_OUT        // an open contact would carry a share of the load, on which the motion depends
};

/* The contact problem of one event time: n contact rows with `v = base + K y`, one entry or line per contact elsewhere.

   Forces y and motions v are impulses and speeds, or forces and accelerations.  `contact`: numbers of the contacts in
   the model; `row` (n,): their constraint rows; `normal tangent`: each contact's rows among the n, -1 where there is
   none; `spatial`: slips in two directions, the row after its tangent row is the second, and `FORWARD` is the only way
   to slide.

   Motions and forces: `K` (n, n), the Delassus matrix; `base` (n,); `target` (n,): to what a held row is brought, and
   above what an open one stays; `floor` (n,): least normal force, which is given where a contact opens.

   Laws: `static_friction kinetic_friction`: coefficients of friction, or bounds of the friction force where there is no
   normal row; `infinite`: never slides; `bilateral`: normal force of either sign, never open; `slipping`: the slip
   direction is known from a slip velocity that is not zero; `slip_direction` (·, 2): the unit vector of that slip of a
   spatial contact, given where `slipping`, else found; `slack` (·, 2): how far the normal force and the margin of
   friction of a contact whose guard fired may be from zero, see fsm_read_slack (the margin squared where `spatial`).

   Candidates: `allowed` (·, FSM_CHOICE_COUNT); `cost` (·, FSM_CHOICE_COUNT) decides between consistent candidates, the
   smallest sum is taken; `excluded`: choice that a contact may not keep if all others with one keep theirs, -1: none;
   `lasting`: 1 where a contact stuck just before and is not at a limit; `jammed`: 1 for the contacts of an island for which
   no candidate was consistent; `shares_count`: contacts left open carry no share of the load, as one more of equal springs;
   `shares_open`: redundant contacts share it in no known way, and candidates whose motion depends on that are no solutions.

   Scaling: `unit` (n,): unscaled forces and motions are `unit * y` and `v / unit`; `scale`: least magnitude against
   which zero is judged, square root of (J) or (J/s²). */
struct fsm_contact_problem {
    fsm_indices contact;
    fsm_indices row;
    fsm_indices normal;
    fsm_indices tangent;
    fsm_indices spatial;
    fsm_matrix K;
    fsm_vector base;
    fsm_vector target;
    fsm_vector floor;
    fsm_vector static_friction;
    fsm_vector kinetic_friction;
    fsm_indices infinite;
    fsm_indices bilateral;
    fsm_indices slipping;
    fsm_matrix slip_direction;
    fsm_matrix slack;
    fsm_index_table allowed;
    fsm_matrix cost;
    fsm_indices excluded;
    fsm_indices lasting;
    fsm_indices jammed;
    bool shares_count;
    bool shares_open;
    fsm_vector unit;
    double scale;
};

/* A candidate with its forces and motions. */
struct fsm_contact_solution {
    fsm_indices choices; // (n_contacts,)
    fsm_vector forces;   // (n,)
    fsm_vector motions;  // (n,)
};

/* Judgement of one candidate. */
struct fsm_candidate_result {
    double violation; // the worst, as a fraction of the scale
    enum fsm_violation law; // that is violated worst
    int64_t contact;  // that violates it, its place in the problem
    double excess; // of the kinetic friction limit where contacts stick: above zero, sticking rests on static friction
    double remainder; // by how much redundant rows are inconsistent
    bool braced;      // contacts can press each other with forces that no load asks for, as large as one likes
    bool shared;      // the motion depends on the load sharing of redundant contacts
};

/* Outcome of trying all candidates. */
struct fsm_enumeration_result {
    int64_t consistent;   // candidates that satisfy all contact laws
    int64_t tried;        // candidates
    int64_t motions;      // different motions of consistent candidates that need no static friction, counted up to 2
    int64_t continuity;   // 1: of several motions the only one in which all contacts that last stick
    int64_t braced;       // candidates whose contacts can brace each other, where there is one in which none can
    int64_t all_braced;   // 1: there are consistent candidates, and the contacts of each can brace each other
    int64_t undetermined; // candidates that leave the motion indeterminate
    int64_t shared;       // candidates whose motion depends on how redundant contacts share the load
    int64_t non_finite;   // candidates whose forces or motions are not numbers
    double nearest;       // least violation, if none is consistent
};

/* Log of the candidates tried, FSM_LOG_WIDTH numbers each: contacts (bits), choices (decimal digits), violation, and
   1000 times the law plus the contact that violates it. */
#define FSM_LOG_WIDTH  4
#define FSM_LOG_LENGTH 48 // numbers of the first 12 candidates
struct fsm_candidate_log {
    fsm_vector entries; // (FSM_LOG_LENGTH,)
    int64_t count;      // candidates entered, also those that found no room
};

#define FSM_HOLDS_NOTHING 1e-13 // a row this much smaller than the largest holds nothing
#define FSM_HIDDEN 1e-12 // a row whose response is this part of its free response is held by the other rows

/* ---- the resolution of an event ---- */

/* What is given of the instant that is resolved. */
struct fsm_instant {
    double t;            // (s)
    int64_t mode;        // before
    int64_t reason;      // FSM_REASON_...
    double remaining;    // FSM_REASON_ZENO: how long the impact sequence that is completed continues (s)
    fsm_indices fired;   // numbers of the guards that reached zero together; none unless the reason is an event or Zeno
    fsm_vector guards;   // values, slopes, tolerances of the guards, see fsm_read_slack
    double resolution;   // of event location (s)
    fsm_indices limits;  // (2 n_contacts,): events and slip directions of friction and release limits met before
    int64_t transitions; // made before at this event time
    fsm_vector conditions; // which user-defined transitions are due; those that wait for what contacts do are entered
};

/* What comes out of the resolution of an instant. */
struct fsm_outcome {
    int64_t mode;                     // after
    fsm_codes wanted;                 // (n_contacts,): contact states after
    fsm_vector impulse;               // (n_rows,): impulses of the constraint rows, zero where none
    struct fsm_impact_energy *energy; // before and after (J), and the part of the restitution kept
    struct fsm_notes *notes;
    struct fsm_candidate_log log; // of the last contact problem
    fsm_indices implied;          // (n_contacts,): 1 for contacts whose gaps two closed ones determine
};

/* An instant while it is resolved, with one entry per contact where nothing else is said. */
struct fsm_resolution {
    struct fsm_arena *arena;
    const struct fsm_tables *tables;
    const struct fsm_terms *terms; // unconstrained terms at the state
    double t;                      // (s)
    fsm_vector state;              // (n_q + n_u,)
    fsm_vector u;                  // (n_u,): the generalized speeds in `state`
    fsm_vector context;            // (n_c,)
    fsm_vector sigma;              // slip directions in `context`
    fsm_indices before;            // contact states before
    fsm_indices event;             // event of each contact, 0: none
    fsm_vector direction;          // slip direction that a slide beginning with the event takes
    fsm_matrix slack;              // (n_contacts, 2), see fsm_read_slack
    fsm_indices closed;            // 1: active
    fsm_indices jammed;            // 1: of an island for which no contact states are consistent
    fsm_indices moved;             // 1: a closed contact whose gap its reset map has changed
    fsm_indices answers;           // 1: a contact that answers an impulse of the transition, without rebound
    fsm_indices insists;           // 1: a contact that closes though the transition opens it, as nothing else stops it
    fsm_matrix between;            // (n_transitions, 2): guards of the conditions that became met between two jumps, infinite:
                                   // none did, minus infinite: it ceased to be
    int64_t transition;            // user-defined transition taken, -1: none
    bool placed;                   // the state comes from outside, or a reset map may have changed it
    struct fsm_outcome *outcome;
};

/* Purpose of an impact. */
enum fsm_purpose {
    FSM_IMPACT_REBOUND,
    FSM_IMPACT_PLASTIC,
    FSM_IMPACT_ARREST // without collision: slip inconsistent with any accelerations is stopped or reversed
};

/* The impact of the bilateral rows alone: what contact impulses are added to. */
struct fsm_base_motion {
    fsm_vector u;        // (n_u,): speeds after
    fsm_vector reaction; // (m,): impulses of the bilateral rows
    double scale;        // magnitude of the motion, square root of twice the kinetic energy (J)
};

/* What the energy balance of an impact needs beside the contact impulses and the row speeds after. */
struct fsm_impact_balance {
    fsm_vector before; // (n,): speeds of the contact rows before
    double base_work;  // twice the work of the bilateral rows without contact impulses (J)
    fsm_vector work;   // (n,): the same per unit of each contact impulse
    double tolerance;  // fraction of the work by which the energy may rise
};

/* conditions.c */
FSM_LOCAL int64_t fsm_first_due(fsm_vector conditions);

/* contact_solver.c */
FSM_LOCAL void fsm_release_overloaded_locks(const struct fsm_resolution *r);
FSM_LOCAL void fsm_suspend_limited_locks(const struct fsm_resolution *r);
FSM_LOCAL void fsm_resume_limited_locks(const struct fsm_resolution *r);

/* contact_features.c */
#define FSM_SAME_ROW 1e-7 // normals with a smaller relative difference belong to flush faces
#define FSM_LEVEL 4.0 // times the gap tolerance: largest depth of a corner's flush neighbour in a guard
FSM_LOCAL bool fsm_within_face(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k);
FSM_LOCAL double fsm_still(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k);
FSM_LOCAL double fsm_speed_of_succession(const struct fsm_resolution *r, int64_t k);
FSM_LOCAL void fsm_exclude_face_ends(const struct fsm_resolution *r);

/* compliant_contacts.c */
FSM_LOCAL bool fsm_is_placed_inside(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices states,
                                    int64_t k);
FSM_LOCAL bool fsm_edges_cross(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices states);
FSM_LOCAL bool fsm_solids_overlap(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices states);

/* guards.c */
#define FSM_DEEPEST 4.0 // times the gap tolerance: largest depth of a gap after its guard has fired
FSM_LOCAL void fsm_read_events(const struct fsm_resolution *r, const struct fsm_instant *instant);
FSM_LOCAL void fsm_make_due_by_changes(const struct fsm_resolution *r, const struct fsm_instant *instant,
                                       fsm_vector before);
FSM_LOCAL bool fsm_approaches(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k, fsm_vector u);
FSM_LOCAL void fsm_read_slack(const struct fsm_tables *tables, const struct fsm_instant *instant, fsm_matrix slack);
FSM_LOCAL void fsm_recall_limits(fsm_indices limits, fsm_indices event, fsm_vector direction);
FSM_LOCAL void fsm_void_limits(const struct fsm_resolution *r);
FSM_LOCAL bool fsm_any_event(fsm_indices event);

/* impacts.c */
FSM_LOCAL bool fsm_gains_energy(const struct fsm_impact_balance *balance, fsm_vector forces, fsm_vector motions);
FSM_LOCAL double fsm_energy_consistent_fraction(const struct fsm_impact_balance *balance, fsm_vector plastic,
                                                fsm_vector plastic_motions, fsm_vector forces, fsm_vector motions);

/* contact_problem.c */
FSM_LOCAL double fsm_direction_of(int64_t choice);
FSM_LOCAL bool fsm_is_open(int64_t choice);
FSM_LOCAL double fsm_side_of(int64_t choice);
FSM_LOCAL struct fsm_contact_problem fsm_allocate_problem(struct fsm_arena *arena, int64_t count);
FSM_LOCAL void fsm_add_contact(struct fsm_contact_problem *problem, const struct fsm_tables *tables, int64_t k,
                               bool has_normal);
FSM_LOCAL struct fsm_contact_problem fsm_scale_problem(struct fsm_arena *arena,
                                                       const struct fsm_contact_problem *unscaled, fsm_matrix K,
                                                       fsm_vector base, fsm_vector free_response, double scale);
FSM_LOCAL void fsm_retarget(const struct fsm_contact_problem *problem, const struct fsm_contact_problem *unscaled,
                            fsm_vector base);
FSM_LOCAL fsm_indices fsm_contact_islands(struct fsm_arena *arena, const struct fsm_contact_problem *problem);
FSM_LOCAL struct fsm_contact_problem fsm_subproblem(struct fsm_arena *arena, const struct fsm_contact_problem *problem,
                                                    fsm_indices members, fsm_indices rows);
FSM_LOCAL struct fsm_contact_solution fsm_allocate_solution(struct fsm_arena *arena, int64_t count, int64_t n);
FSM_LOCAL fsm_matrix fsm_null_space(struct fsm_arena *arena, const struct fsm_lu *lu);
FSM_LOCAL void fsm_minimum_norm(struct fsm_arena *arena, fsm_vector y, fsm_matrix basis, fsm_vector unit);
FSM_LOCAL double fsm_maximise_margin(struct fsm_arena *arena, fsm_matrix g, fsm_vector slack, double cap,
                                     fsm_vector *shares);

/* candidates.c */
FSM_LOCAL double fsm_solve_candidate(struct fsm_arena *arena, const struct fsm_contact_problem *problem,
                                     fsm_indices choices, fsm_vector y, fsm_vector v, fsm_matrix *basis, bool *shared);
FSM_LOCAL fsm_indices fsm_held_rows(struct fsm_arena *arena, const struct fsm_contact_problem *problem,
                                    fsm_indices choices);
FSM_LOCAL bool fsm_affects_motion(const struct fsm_contact_problem *problem, fsm_matrix basis);
FSM_LOCAL bool fsm_share_forces(struct fsm_arena *arena, const struct fsm_contact_problem *problem, fsm_indices choices,
                                fsm_indices held, fsm_matrix basis, fsm_vector y);
FSM_LOCAL double fsm_share_left_out(struct fsm_arena *arena, const struct fsm_contact_problem *problem,
                                    fsm_indices choices, fsm_vector y, int64_t *contact);
FSM_LOCAL double fsm_reference_scale(const struct fsm_contact_problem *problem, fsm_vector y);
FSM_LOCAL struct fsm_candidate_result fsm_evaluate_candidate(struct fsm_arena *arena,
                                                             const struct fsm_contact_problem *problem,
                                                             fsm_indices choices, fsm_vector y, fsm_vector v,
                                                             double tolerance);

/* mode_selection.c */
#define FSM_NO_CANDIDATE 1e30 // violation without any candidate
FSM_LOCAL struct fsm_enumeration_result fsm_enumerate_candidates(struct fsm_arena *arena,
                                                                 const struct fsm_contact_problem *problem,
                                                                 double tolerance,
                                                                 const struct fsm_contact_solution *best,
                                                                 struct fsm_candidate_log *log);

/* complementarity.c */
FSM_LOCAL double fsm_widest_margin(struct fsm_arena *arena, fsm_matrix g, fsm_vector slack, fsm_indices cone, double cap,
                                   fsm_vector *shares);
FSM_LOCAL bool fsm_solve_lcp(struct fsm_arena *arena, fsm_matrix P, fsm_vector q, fsm_vector z);
FSM_LOCAL bool fsm_propose(struct fsm_arena *arena, const struct fsm_contact_problem *problem, fsm_indices choices,
                           double tolerance);

/* contact_solver.c */
FSM_LOCAL int64_t fsm_solve_contact_problem(struct fsm_arena *arena, const struct fsm_contact_problem *problem,
                                            double tolerance, const struct fsm_contact_solution *solution,
                                            struct fsm_candidate_log *log, struct fsm_enumeration_result *result);
#define FSM_LOAD_PASSES 1000  // until loads and forces agree; beyond, there is no such motion
#define FSM_LOAD_AGREES 1e-14 // change of a load, as a fraction of the largest
struct fsm_bearing_problem {
    const struct fsm_tables *tables;
    const struct fsm_contact_problem *problem; // scaled
    const struct fsm_response *response;
    fsm_indices held;                             // (m,): numbers of the bilateral rows
    fsm_vector base, reaction;                    // (m,): their forces without those of contacts, and with them
    fsm_vector still, moving;                     // (n_contacts of the problem,): loads at rest and sliding, N
    fsm_vector static_friction, kinetic_friction; // the same, coefficients
};
struct fsm_row_forces {
    fsm_indices row; // (n,): numbers of constraint rows
    fsm_vector force;
};
FSM_LOCAL double fsm_bearing_load(const struct fsm_tables *tables, int64_t k, struct fsm_row_forces bilateral,
                                  struct fsm_row_forces contacts);
FSM_LOCAL void fsm_reactions_under(const struct fsm_response *response, fsm_vector base, fsm_vector forces,
                                   fsm_vector reaction);
FSM_LOCAL bool fsm_any_bearing(const struct fsm_tables *tables, fsm_indices contact);
FSM_LOCAL struct fsm_bearing_problem fsm_bearings_of(struct fsm_arena *arena, const struct fsm_tables *tables,
                                                     const struct fsm_contact_problem *problem,
                                                     const struct fsm_response *response, fsm_indices held,
                                                     fsm_vector base);
FSM_LOCAL int64_t fsm_solve_with_bearings(struct fsm_arena *arena, const struct fsm_bearing_problem *bearings,
                                          double tolerance, const struct fsm_contact_solution *solution,
                                          struct fsm_candidate_log *log, struct fsm_enumeration_result *result);
FSM_LOCAL double fsm_angle_of(double first, double second, double present);
FSM_LOCAL bool fsm_update_slip_directions(struct fsm_work *work, const struct fsm_tables *tables, double t,
                                          fsm_vector x, fsm_vector c, int64_t mode);

/* impacts.c */
FSM_LOCAL fsm_indices fsm_bilateral_rows(struct fsm_arena *arena, const struct fsm_tables *tables, fsm_codes states);
FSM_LOCAL fsm_indices fsm_unlimited_rows(struct fsm_arena *arena, const struct fsm_tables *tables, fsm_codes states);
FSM_LOCAL struct fsm_contact_problem fsm_build_impact_problem(const struct fsm_resolution *r, fsm_indices closed,
                                                              enum fsm_purpose purpose);
FSM_LOCAL bool fsm_base_impact(const struct fsm_resolution *r, const struct fsm_bilateral_system *bilateral,
                               struct fsm_base_motion *base);
FSM_LOCAL void fsm_apply_impulses(const struct fsm_resolution *r, fsm_indices rows, fsm_indices held,
                                  const struct fsm_base_motion *base, const struct fsm_response *response,
                                  fsm_vector forces);
FSM_LOCAL int64_t fsm_resolve_impact(const struct fsm_resolution *r, enum fsm_purpose purpose);
FSM_LOCAL bool fsm_any_strikes(const struct fsm_resolution *r);
FSM_LOCAL int64_t fsm_simultaneous_impact(const struct fsm_resolution *r, const struct fsm_bilateral_system *bilateral,
                                          fsm_indices closed, enum fsm_purpose purpose);

/* contact_features.c */
FSM_LOCAL bool fsm_at_end(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k);
FSM_LOCAL int64_t fsm_corner_behind(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k);
FSM_LOCAL bool fsm_same_corners(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k);
FSM_LOCAL double fsm_between(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t i, int64_t j,
                             int64_t k, double close);
FSM_LOCAL bool fsm_exchangeable(const struct fsm_tables *tables, int64_t j, int64_t k);
FSM_LOCAL bool fsm_alike(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k);
FSM_LOCAL bool fsm_same_normal(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k,
                               double close);
FSM_LOCAL bool fsm_same_place(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k);
FSM_LOCAL bool fsm_is_of_solids(const struct fsm_tables *tables, int64_t k);
FSM_LOCAL bool fsm_has_corners(const struct fsm_tables *tables, fsm_indices closed);
FSM_LOCAL void fsm_choose_features(const struct fsm_resolution *r);
FSM_LOCAL void fsm_rest_on_one(const struct fsm_resolution *r);
FSM_LOCAL void fsm_follow_slip(const struct fsm_resolution *r);
FSM_LOCAL void fsm_void_face_ends(const struct fsm_resolution *r);
FSM_LOCAL bool fsm_find_active(const struct fsm_resolution *r, double near);
FSM_LOCAL bool fsm_any_insists(const struct fsm_resolution *r, double near);

/* compliant_contacts.c */
FSM_LOCAL bool fsm_is_inner_compression(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k);
FSM_LOCAL void fsm_add_compliant_forces(const struct fsm_resolution *r, fsm_vector force);

/* end_of_run.c */
FSM_LOCAL int64_t fsm_complete_zeno_sequence(const struct fsm_resolution *r, double remaining);

/* mode_selection.c */
FSM_LOCAL struct fsm_contact_problem fsm_build_selection_problem(const struct fsm_resolution *r);
FSM_LOCAL void fsm_exclude_fired_choices(const struct fsm_resolution *r, const struct fsm_contact_problem *problem,
                                         int64_t at);
FSM_LOCAL bool fsm_readmit_fired_choices(const struct fsm_resolution *r, const struct fsm_contact_problem *problem,
                                         fsm_index_table admissible);
FSM_LOCAL int64_t fsm_select_contact_states(const struct fsm_resolution *r);

/* conditions.c */
FSM_LOCAL bool fsm_apply_reset(const struct fsm_resolution *r, int64_t address);
FSM_LOCAL void fsm_look_between(const struct fsm_resolution *r, const struct fsm_instant *instant, fsm_vector when);
FSM_LOCAL void fsm_make_due_between(const struct fsm_resolution *r, const struct fsm_instant *instant);
FSM_LOCAL bool fsm_only_observes(const struct fsm_resolution *r, const struct fsm_instant *instant);
FSM_LOCAL bool fsm_changes_no_motion(const struct fsm_resolution *r, fsm_vector x, fsm_vector c);

/* event_resolution.c */
FSM_API int64_t fsm_arena_sizes(const struct fsm_sizes *sizes, int64_t contacts, int64_t *integers);
FSM_LOCAL int64_t fsm_resolve_event(struct fsm_work *work, const struct fsm_tables *tables,
                                    const struct fsm_instant *instant, fsm_vector x, fsm_vector c,
                                    struct fsm_outcome *outcome);
FSM_LOCAL int64_t fsm_find_mode(const struct fsm_tables *tables, fsm_codes states, int64_t near);

#endif
