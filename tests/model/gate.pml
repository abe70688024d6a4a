/* The gate as a model for Spin: candidates, the leading runner, takeover, tasks.
 *
 * An atomic block of a runner is one SQL function (its name stands in the comment), with one exception:
 * runner_enter looks for a leading runner and then writes its own row. Two of them may interleave there;
 * the unique index process_single_runner decides. A task is a transaction that lasts. PostgreSQL runs it to
 * its end whatever becomes of the runner. Time is as in page.pml.
 *
 * Checked in every state: one runner leads; none acts as the leader while another leads, except one that does
 * not answer when it is asked to step down; no task commits after a later epoch has begun. Checked under fairness: in the end the newest runner leads and stays.
 */

#define RUNNERS 2
#define FAULTS 2
#define NOBODY 255

#define GATE_INDEX 1
#define MAINTENANCE_CHECKS_LEAD 2
#define MAINTENANCE_HOLDS_LEAD 3
#define LAPSE_WAITS_FOR_LEASE 4
#define SELF_FENCING 5
#define LEAVE_ASKED 6
#ifndef WITHOUT
#define WITHOUT 0
#endif
#define guard(name) (WITHOUT != name)

mtype = { absent, waiting, leads, exited };
#define OVER 0
#define MARGIN 1
#define TRUSTED 2

/* Rows. */
mtype row[RUNNERS] = absent;
byte lease[RUNNERS];
byte began[RUNNERS];  /* when a candidate came; the newest wins */
bool asked[RUNNERS];  /* request = leave */
byte epoch[RUNNERS];
byte last_epoch, last_began;
bool calls[RUNNERS];  /* a call of runner_maintenance is on its way to the server */
bool task[RUNNERS];   /* a task of this runner is under way and holds its row */

/* Memory of the runners. */
bool up[RUNNERS];
bool cut_off[RUNNERS];
bool acts[RUNNERS];   /* believes that it leads */
bool saw_free[RUNNERS];
byte faults = FAULTS;

#define reaches(r) (up[r] && !cut_off[r])
#define present(r) (row[r] == waiting || row[r] == leads)
#define may_end(r) (!task[r] || !guard(MAINTENANCE_HOLDS_LEAD)) /* for update waits for key share */

inline die(r) { up[r] = false; cut_off[r] = false; acts[r] = false; saw_free[r] = false }

proctype Runner(byte r; byte other) {
  do
  :: atomic { !up[r] && !present(r) && (row[r] == absent || faults > 0) -> /* process_join */
       if :: row[r] == exited -> faults-- :: else fi; /* starting again is bounded, too */
       up[r] = true; row[r] = waiting; lease[r] = TRUSTED; asked[r] = false;
       last_began++; began[r] = last_began }

  :: atomic { reaches(r) && row[r] == waiting && present(other) && lease[other] != OVER &&
       began[other] > began[r] -> /* runner_enter: yield */
       row[r] = exited; die(r) }
  :: atomic { reaches(r) && row[r] == waiting && row[other] == leads && !asked[other] &&
       guard(LEAVE_ASKED) && began[r] > began[other] -> asked[other] = true } /* runner_clear */
  :: atomic { reaches(r) && row[r] == waiting && row[other] == leads && may_end(other) &&
       (lease[other] == OVER || !guard(LAPSE_WAITS_FOR_LEASE)) -> row[other] = exited } /* runner_clear */
  :: atomic { reaches(r) && row[r] == waiting && !saw_free[r] && row[other] != leads -> saw_free[r] = true }
  :: atomic { reaches(r) && row[r] == waiting && saw_free[r] -> /* runner_lead */
       saw_free[r] = false;
       if
       :: row[other] == leads && guard(GATE_INDEX) /* unique_violation */
       :: else ->
          row[r] = leads; lease[r] = TRUSTED; last_epoch++; epoch[r] = last_epoch; acts[r] = true;
          assert(row[other] != leads);
          assert(!acts[other] || asked[other])
       fi }

  :: atomic { reaches(r) && present(r) && lease[r] == MARGIN && !(row[r] == leads && asked[r]) ->
       lease[r] = TRUSTED; acts[r] = (row[r] == leads) } /* runner_heartbeat */
  :: atomic { reaches(r) && (!present(r) || lease[r] == OVER) -> /* it has lapsed */
       if :: row[r] == waiting -> row[r] = exited :: else fi;
       die(r) }
  :: atomic { reaches(r) && row[r] == leads && asked[r] && may_end(r) -> /* runner_leave */
       row[r] = exited; die(r) }

  :: atomic { reaches(r) && acts[r] && !calls[r] && !task[r] && !asked[r] -> calls[r] = true }
  od
}

proctype Server(byte r) { /* runs tasks; ends the rows of candidates whose lease is over */
  do
  :: atomic { calls[r] -> calls[r] = false; /* runner_maintenance */
       if
       :: (row[r] == leads && lease[r] != OVER) || !guard(MAINTENANCE_CHECKS_LEAD) -> task[r] = true
       :: else
       fi }
  :: atomic { task[r] -> task[r] = false; assert(epoch[r] == last_epoch) }
  :: atomic { row[r] == waiting && lease[r] == OVER -> row[r] = exited } /* lapse_process */
  od
}

proctype Clock(byte r) {
  do
  :: atomic { acts[r] && lease[r] != TRUSTED && guard(SELF_FENCING) -> acts[r] = false }
  :: atomic { present(r) && lease[r] == TRUSTED && !reaches(r) -> lease[r] = MARGIN }
  :: atomic { present(r) && lease[r] == MARGIN && !reaches(r) &&
       (!acts[r] || !guard(SELF_FENCING)) -> lease[r] = OVER }
  :: atomic { row[r] == leads && asked[r] -> lease[r] = OVER } /* graceful_timeout */
  od
}

proctype Fate(byte r) {
  do
  :: atomic { up[r] && faults > 0 -> faults--; die(r) }
  :: atomic { reaches(r) && faults > 0 -> faults--; cut_off[r] = true }
  :: atomic { cut_off[r] -> cut_off[r] = false }
  od
}

init {
  atomic {
    run Runner(0, 1); run Runner(1, 0); run Server(0); run Server(1);
    run Clock(0); run Clock(1); run Fate(0); run Fate(1)
  }
}

/* A runner that has died is started again only while faults are left, so both may be gone in the end. */
#define leads_last(r, other) (row[r] == leads && up[r] && !(present(other) && began[other] > began[r]))
#define settled (leads_last(0, 1) || leads_last(1, 0) || (!up[0] && !up[1]))
ltl the_newest_leads { <> [] settled }
