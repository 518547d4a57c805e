#ifndef FSM_CONTACTS_H
#define FSM_CONTACTS_H

#include "run.h"
#include "algebra.h"

/* One instant's contacts, scaled; n rows, one entry or line per contact elsewhere.

   `normal tangent` (int64): each contact's rows among the n, -1 where there is none; `K` (n, n), `base`
   (n,); `target` (n,): what a held row is brought to, and an open one stays above; `floor` (n,): normal force
   given beforehand; `static kinetic`: coefficients of friction, or bounds of the force where there is no normal
   row; `infinite`: never slides; `two_sided`: normal force of either sign, never open; `slipping`: the
   direction is known from a slip speed that is not zero; `allowed cost` (·, CHOICES): `cost` decides between
   consistent combinations, the smaller sum is taken; `banned`: choice that a contact may not keep if all others
   with one keep theirs, -1: none; `unit` (n,): forces and motions as they are are
   `unit * y` and `v / unit`; `scale` (1,): magnitude against which zero is judged, at least; `spatial`: slips
   in two directions, the row after its tangent row is the second, and `FORWARD` is the only way to slide; `way`
   (·, 2): the unit vector of that slip, given where `slipping`, else found; `slack` (·, 2): how far the normal
   force and the margin of friction of a contact whose guard fired may be from zero, see
   fired (the margin squared where `spatial`), zero for all others. */
struct fsm_contact_problem {
    fsm_indices normal;
    fsm_indices tangent;
    fsm_matrix K;
    fsm_vector base;
    fsm_vector target;
    fsm_vector floor;
    fsm_vector static_friction;
    fsm_vector kinetic_friction;
    fsm_indices infinite;
    fsm_indices two_sided;
    fsm_indices slipping;
    fsm_index_table allowed;
    fsm_indices banned;
    fsm_matrix cost;
    fsm_vector unit;
    fsm_vector scale;
    fsm_indices spatial;
    fsm_matrix way;
    fsm_matrix slack;
};

/* How one combination fares: its worst violation (a fraction of the scale), of which law, by which contact.

   `excess` is the violation of the static limit's kinetic counterpart: beyond it sticking rests on static
   friction.  `apart`: by how much redundant rows contradict each other. */
struct fsm_candidate_result {
    double violation;
    int64_t law;
    int64_t contact;
    double excess;
    double apart;
};

/* The outcome of trying all combinations.

   `consistent`: how many keep the laws; `tried`; `motions`: how many different motions they stand for, counted
   up to 2 and without what static beyond kinetic friction holds; `undetermined`: combinations that leave the
   motion open; `nearest`: the least violation, if none is consistent. */
struct fsm_enumeration_result {
    int64_t consistent;
    int64_t tried;
    int64_t motions;
    int64_t undetermined;
    double nearest;
};

/* bounded_faces.c */
#define FSM_SAME_ROW 1e-7 // normals that differ by less than this part are those of flush faces
#define FSM_LEVEL                                                                                                      \
    4.0 // times the gap tolerance: as deep as a guard may find a neighbour of a corner that is level with it
FSM_LOCAL bool fsm_within_face(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k);
FSM_LOCAL double fsm_still(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k);
FSM_LOCAL void fsm_hand_over(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_vector u,
                             fsm_indices before, fsm_indices event, fsm_indices closed);

/* fired_guards.c */
#define FSM_DEEPEST 4.0 // times the gap tolerance: how deep a gap may be where its guard has fired
FSM_LOCAL void fsm_read_slack(const struct fsm_tables *tables, int64_t mode, fsm_vector guards, fsm_indices fired,
                              int64_t n_fired, double resolution, fsm_matrix slack);
FSM_LOCAL void fsm_recall_limits(fsm_indices limits, fsm_indices event, fsm_vector direction);
FSM_LOCAL void fsm_mark_closing(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t contact,
                                fsm_indices event);
FSM_LOCAL bool fsm_any_event(fsm_indices event);

/* impact_energy.c */
FSM_LOCAL bool fsm_gains_energy(fsm_vector forces, fsm_vector answers, fsm_vector speed, double base_work,
                                fsm_vector work);
FSM_LOCAL double fsm_energy_consistent_fraction(fsm_vector plastic, fsm_vector plastic_answers, fsm_vector forces,
                                                fsm_vector answers, fsm_vector speed, double base_work,
                                                fsm_vector work);

/* contact_problem.c */

// what a contact can choose
#define FSM_CHOICE_OPEN        0
#define FSM_CHOICE_HOLD        1 // normal and tangent rows held
#define FSM_CHOICE_FORWARD     2 // slides with direction +1
#define FSM_CHOICE_BACKWARD    3 // slides with direction -1
#define FSM_CHOICE_PARTED_HOLD 4 // parts under the impulse given (Poisson's expansion), and its friction stops the slip
#define FSM_CHOICE_PARTED_BACKWARD 6
#define FSM_CHOICE_UNDER_FORWARD   7 // slides, a slot pressed on its other face (normal force negative)
#define FSM_CHOICE_UNDER_BACKWARD  8
#define FSM_CHOICE_COUNT           9
#define FSM_HIDDEN 1e-12 // a row whose response is this part of what it would be without the others is held by them
FSM_LOCAL double fsm_direction_of(int64_t choice);
FSM_LOCAL bool fsm_meeting_is_open(int64_t choice);
FSM_LOCAL double fsm_side_of(int64_t choice);
FSM_LOCAL struct fsm_contact_problem fsm_allocate_problem(struct fsm_arena *arena, int64_t count);
FSM_LOCAL struct fsm_contact_problem fsm_scale_problem(struct fsm_arena *arena, const struct fsm_contact_problem *m,
                                                       fsm_matrix K, fsm_vector base, fsm_vector unheld, double scale);
FSM_LOCAL void fsm_retarget(const struct fsm_contact_problem *problem, const struct fsm_contact_problem *m,
                            fsm_vector base);
FSM_LOCAL fsm_indices fsm_contact_islands(struct fsm_arena *arena, const struct fsm_contact_problem *m);
FSM_LOCAL struct fsm_contact_problem fsm_subproblem(struct fsm_arena *arena, const struct fsm_contact_problem *m,
                                                    fsm_indices members, fsm_indices rows);

/* feasibility.c */
FSM_LOCAL fsm_matrix fsm_null_space(struct fsm_arena *arena, fsm_matrix factors, fsm_indices rows, fsm_indices columns,
                                    int64_t rank);
FSM_LOCAL void fsm_minimum_norm(struct fsm_arena *arena, fsm_vector y, fsm_matrix basis, fsm_vector unit);
FSM_LOCAL double fsm_maximise_margin(struct fsm_arena *arena, fsm_matrix g, fsm_vector slack, double cap,
                                     fsm_vector *s_found);

/* candidate_solution.c */
FSM_LOCAL double fsm_solve_candidate(struct fsm_arena *arena, const struct fsm_contact_problem *m, fsm_indices choices,
                                     fsm_vector y, fsm_vector v, fsm_matrix *basis);

/* candidate_enumeration.c */
#define FSM_CANDIDATE_ENUMERATION_WORST 1e30

// a candidate in the log: which contacts (bits), their choices (decimal digits), violation, law and contact
#define FSM_LOG_WIDTH 4
#define FSM_LOG_SIZE  12
FSM_LOCAL double fsm_reference_scale(const struct fsm_contact_problem *m, fsm_vector y);
FSM_LOCAL struct fsm_candidate_result fsm_evaluate_candidate(struct fsm_arena *arena,
                                                             const struct fsm_contact_problem *m, fsm_indices choices,
                                                             fsm_vector y, fsm_vector v, double tolerance);
FSM_LOCAL void fsm_write_log(fsm_vector log, int64_t at, fsm_indices choices, fsm_indices who,
                             struct fsm_candidate_result trial);
FSM_LOCAL struct fsm_enumeration_result fsm_enumerate_candidates(struct fsm_arena *arena,
                                                                 const struct fsm_contact_problem *m, double tolerance,
                                                                 fsm_indices best, fsm_vector forces,
                                                                 fsm_vector answers, fsm_indices who, fsm_vector log,
                                                                 int64_t logged);
FSM_LOCAL bool fsm_advance_choices(fsm_indices choices, fsm_index_table allowed);

/* lemke.c */
FSM_LOCAL bool fsm_solve_lcp(struct fsm_arena *arena, fsm_matrix P, fsm_vector q, fsm_vector z);
FSM_LOCAL bool fsm_propose(struct fsm_arena *arena, const struct fsm_contact_problem *m, fsm_indices best,
                           double tolerance);

/* contact_solver.c */
FSM_LOCAL int64_t fsm_solve_contact_problem(struct fsm_arena *arena, const struct fsm_contact_problem *m,
                                            double tolerance, fsm_indices best, fsm_vector forces, fsm_vector answers,
                                            fsm_indices who, fsm_vector log, int64_t logged,
                                            struct fsm_enumeration_result *verdict_found);

/* slip_direction.c */
FSM_LOCAL double fsm_angle_of(double first, double second, double kept);
FSM_LOCAL bool fsm_update_slip_directions(struct fsm_work *work, const struct fsm_tables *tables, double t,
                                          fsm_vector x, fsm_vector c, int64_t mode);

/* impacts.c */
#define FSM_LAWS_KEPT      1e-9
#define FSM_IMPACT_PLASTIC 1
#define FSM_IMPACT_ARREST  2 // no collision: slip that the accelerations cannot carry on is brought to rest or reversed
FSM_LOCAL fsm_indices fsm_bilateral_rows(struct fsm_arena *arena, const struct fsm_tables *tables, fsm_codes wanted);
FSM_LOCAL int64_t fsm_resolve_impact(struct fsm_arena *arena, const struct fsm_tables *tables,
                                     const struct fsm_terms *terms, fsm_vector state, fsm_codes wanted,
                                     fsm_indices closed, bool plastic, fsm_vector impulse,
                                     struct fsm_impact_energy *energy, fsm_vector log);
FSM_LOCAL bool fsm_any_strikes(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices closed,
                               fsm_vector u, double slow);
FSM_LOCAL int64_t fsm_simultaneous_impact(struct fsm_arena *arena, const struct fsm_tables *tables,
                                          const struct fsm_terms *terms, const struct fsm_bilateral_system *bilateral,
                                          fsm_vector u, fsm_indices closed, int64_t purpose, fsm_vector impulse,
                                          struct fsm_impact_energy *energy, fsm_vector log);
FSM_LOCAL void fsm_apply_impulses(fsm_indices which, fsm_indices held, fsm_vector base_u, fsm_vector base_reaction,
                                  fsm_matrix motions, fsm_matrix reactions, fsm_vector forces, fsm_vector u,
                                  fsm_vector impulse);
FSM_LOCAL struct fsm_contact_problem fsm_build_impact_problem(struct fsm_arena *arena, const struct fsm_tables *tables,
                                                              const struct fsm_terms *terms, fsm_vector u,
                                                              fsm_indices closed, int64_t purpose,
                                                              fsm_indices *which_found, fsm_indices *who_found);

/* contact_features.c */
FSM_LOCAL bool fsm_at_end(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k);
FSM_LOCAL int64_t fsm_corner_behind(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k);
FSM_LOCAL bool fsm_same_corners(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k);
FSM_LOCAL void fsm_separate_corners(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_vector u,
                                    fsm_indices before, fsm_indices event, fsm_indices closed);
FSM_LOCAL double fsm_between(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t i, int64_t j,
                             int64_t k, double close);
FSM_LOCAL bool fsm_exchangeable(const struct fsm_tables *tables, int64_t j, int64_t k);
FSM_LOCAL bool fsm_alike(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k);
FSM_LOCAL bool fsm_same_normal(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k,
                               double close);
FSM_LOCAL bool fsm_same_place(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k);
FSM_LOCAL void fsm_one_of_each_place(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices before,
                                     fsm_indices event, fsm_indices closed, fsm_indices implied);
FSM_LOCAL void fsm_choose_features(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_vector u,
                                   fsm_indices before, fsm_indices event, fsm_indices closed, fsm_indices implied);
FSM_LOCAL void fsm_rest_on_one(struct fsm_arena *arena, const struct fsm_tables *tables, const struct fsm_terms *terms,
                               fsm_vector u, fsm_codes wanted, fsm_indices before, fsm_indices event,
                               fsm_indices closed);
FSM_LOCAL void fsm_follow_slip(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices before,
                               fsm_codes wanted, fsm_vector sigma);
FSM_LOCAL bool fsm_has_corners(const struct fsm_tables *tables, fsm_indices closed);
FSM_LOCAL void fsm_forget_leaving(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices event);

/* closed_contacts.c */
FSM_LOCAL bool fsm_find_active(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_vector u,
                               fsm_codes wanted, fsm_indices before, fsm_indices event, int64_t written,
                               double close_to, fsm_indices closed, fsm_indices implied);

/* compliant_contacts.c */
FSM_LOCAL void fsm_add_compliant_forces(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_vector u,
                                        fsm_indices before, fsm_indices event, fsm_codes wanted, fsm_vector force);

/* zeno_completion.c */
FSM_LOCAL int64_t fsm_complete_zeno_sequence(struct fsm_arena *arena, const struct fsm_tables *tables,
                                             const struct fsm_terms *terms, fsm_vector u, fsm_codes wanted,
                                             fsm_indices closed, double remaining, fsm_vector impulse, fsm_vector log);

/* mode_selection.c */
FSM_LOCAL int64_t fsm_select_contact_states(struct fsm_arena *arena, const struct fsm_tables *tables,
                                            const struct fsm_terms *terms, fsm_vector state, fsm_indices before,
                                            fsm_indices event, fsm_vector direction, fsm_matrix slack,
                                            fsm_indices closed, fsm_codes wanted, fsm_vector sigma, fsm_vector log,
                                            int64_t *tried_found, int64_t *consistent, int64_t *chosen_by_found);

/* event_resolution.c */
#define FSM_ENERGY_COUNT 3
#define FSM_NOTE_COUNT   7
#define FSM_LOG_LENGTH   48 // room for the first candidates: see contact_law.write_log
FSM_API int64_t fsm_arena_sizes(const struct fsm_sizes *sizes, int64_t contacts, int64_t *integers_found);
FSM_LOCAL int64_t fsm_resolve_event(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x,
                                    fsm_vector c, int64_t mode, int64_t reason, double remaining, fsm_indices fired,
                                    int64_t n_fired, fsm_vector guards, double fineness, fsm_indices limits,
                                    fsm_codes wanted, fsm_vector impulse, struct fsm_impact_energy *energy,
                                    struct fsm_notes *notes, fsm_vector log, fsm_indices implied,
                                    int64_t *next_mode_found);
FSM_LOCAL int64_t fsm_find_mode(const struct fsm_tables *tables, fsm_codes wanted);

#endif
