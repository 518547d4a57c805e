/* Time stepping by the Moreau-Jean scheme. */

#ifndef FSM_TIME_STEPPING_H
#define FSM_TIME_STEPPING_H

#include "stepping.h"

/* One step of the scheme, from `t` to `t + h`. */
struct fsm_time_step {
    struct fsm_arena *arena;
    const struct fsm_tables *tables;
    const struct fsm_terms *terms; // unconstrained terms, at the middle once that is known
    double t, h;                   // (s)
    double middle_time;            // (s)
    fsm_vector u;                  // (n_u,): speeds at the start
    fsm_vector middle;             // (n_q + n_u,): state at the middle
    fsm_vector context;            // (n_c,)
    fsm_codes codes;               // (n_contacts,): contact states of the step before
    fsm_vector gaps;               // (n_contacts,): where a part of the step began, of contacts that may be passed (m)
    fsm_vector rates;              // (n_contacts,): of these gaps, along the way of that part (m/s)
    fsm_codes free_side;           // (n_contacts,): 1: on the free side of its face before, or in contact since
};

/* The contact rows of a step; places among them per contact, -1 where none. */
struct fsm_active_rows {
    fsm_indices rows;    // (n,): numbers of the constraint rows
    fsm_indices normal;  // (n_contacts,)
    fsm_indices tangent; // (n_contacts,)
    // What loads bearings: the bilateral rows (m,), their impulses without those of contacts, and the response to these.
    fsm_indices held;
    fsm_vector reaction;
    const struct fsm_response *response;
};

#define FSM_MOST_SWEEPS 2000 // of the projected Gauss-Seidel method

/* Contact problems of a run not solved by the sweeps, and the step limit. */
struct fsm_time_stepping_report {
    double unsolved;       // steps with sweeps that did not converge
    double first_unsolved; // start of the first of them (s)
    double worst_unsolved; // largest change of a speed in a last sweep, as a fraction of the fastest
    double longest;        // longest suitable step, if one was too long (s)
    double passed;         // 1 + the contact passed through in this step; 0: it was too long for compliant ones
};

/* Columns of `fsm_time_stepping.energies`. */
enum fsm_energy_column {
    FSM_ENERGY_FREE,    // kinetic plus potential energy after the step without the impulses of contacts (J)
    FSM_ENERGY_AFTER,   // with them (J)
    FSM_ENERGY_REBOUND, // part of the restitution kept
    FSM_ENERGY_WIDTH
};

/* The results of a run: in every array but the last two row i + 1 is written from row i. */
struct fsm_time_stepping {
    fsm_vector times;       // (n,), given (s)
    fsm_matrix x;           // (n, n_q + n_u): states
    fsm_matrix c;           // (n, n_c): contexts with slip directions
    fsm_code_table codes;   // (n, n_contacts): contact states
    fsm_matrix free_speeds; // (n, n_u): speeds without the impulses of contacts
    fsm_matrix middle;      // (n, n_q + n_u): states at the middle
    fsm_matrix impulses;    // (n, n_rows): of all constraint rows (N s)
    fsm_matrix energies;    // (n, FSM_ENERGY_WIDTH)
    fsm_codes free_side;    // (n_contacts,), see fsm_time_step
    struct fsm_time_stepping_report *report;
    int64_t segment; // of the input tables, at the last row written
    int64_t row;     // the last row written
};

/* moreau_contacts.c */
FSM_LOCAL void fsm_begin_sides(const struct fsm_time_step *step);
FSM_LOCAL void fsm_update_sides(const struct fsm_time_step *step);
FSM_LOCAL bool fsm_presses(const struct fsm_time_step *step, int64_t k);
FSM_LOCAL struct fsm_active_rows fsm_list_active(const struct fsm_time_step *step);
FSM_LOCAL bool fsm_may_begin(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices states,
                             fsm_codes free_side);

/* moreau_jean.c */
FSM_LOCAL void fsm_note_gaps(const struct fsm_time_step *step, fsm_vector u);
FSM_LOCAL int64_t fsm_passed_through(const struct fsm_time_step *step, fsm_vector x, fsm_vector rate, double length,
                                     fsm_vector end, double *longest);
FSM_LOCAL double fsm_longest_step(const struct fsm_time_step *step, const struct fsm_bilateral_system *bilateral);

/* moreau_shares.c */
FSM_LOCAL double fsm_share_impulses(const struct fsm_time_step *step, const struct fsm_active_rows *active,
                                    fsm_matrix K, double fastest, fsm_vector speed, fsm_vector impulse);
FSM_LOCAL bool fsm_stick_on(const struct fsm_time_step *step, const struct fsm_active_rows *active, fsm_matrix K,
                            fsm_vector before, double fastest, bool solved, fsm_vector speed, fsm_vector impulse);

/* moreau_contacts.c */
FSM_LOCAL double fsm_friction_bound(const struct fsm_time_step *step, const struct fsm_active_rows *active, int64_t k,
                                    fsm_vector impulse);
FSM_LOCAL double fsm_contact_impulses(const struct fsm_time_step *step, const struct fsm_active_rows *active,
                                      fsm_matrix K, fsm_vector target, fsm_vector returned, double fastest,
                                      fsm_vector speed,
                                      fsm_vector impulse, double *kept);
FSM_LOCAL bool fsm_is_converged(double change, double fastest);
FSM_LOCAL bool fsm_is_solved(double change, double fastest);

/* moreau_jean.c */
FSM_API int64_t fsm_moreau_jean_steps(const struct fsm_tables *tables, const struct fsm_input_tables *inputs,
                                      struct fsm_work *work, struct fsm_time_stepping *run);
FSM_API bool fsm_moreau_jean_may_start(const struct fsm_tables *tables, struct fsm_work *work, double t, fsm_vector x,
                                       fsm_vector c, fsm_codes codes, fsm_codes free_side, fsm_codes approaches);

#endif
