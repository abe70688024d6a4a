/* The life of a page as a model for Spin: claim, heartbeat, lapse, fence, release, seal, quarantine.
 *
 * An atomic block of a worker or of the runner is one SQL function, so one transaction; the comment
 * names it. Time is three levels per lease, because only their order matters: TRUSTED (the worker may
 * act), MARGIN (its trust window is over: hooks are being killed), OVER (others may take its pages).
 *
 * Checked in every state: no page runs twice at the same time, none is sealed twice, and none is
 * sealed by an attempt that is not its latest. Checked under fairness: every page ends.
 * guard(name) stands for a guard of the program; `run` takes each away once (-DWITHOUT=FENCE, for instance).
 */

#define WORKERS 2
#define PAGES 2
#define KILLER 1      /* the page that kills its worker each time */
#ifndef FAULTS        /* trace.py gives its own */
#define MAX_LAPSES 2  /* collection.max_lapses */
#define FAULTS 2      /* kills, cuts and lost answers that come from outside */
#define MOST_CLAIMS 9 /* keeps the state finite where a page without its guard is claimed for ever */
#endif
#define NONE 255

#define LAPSE_WAITS_FOR_LEASE 1
#define LAPSE_RELEASES 2
#define QUARANTINE 3
#define HEARTBEAT_FINDS_EXTRA 4
#define CLAIM_SKIPS_OWNED 5
#define FENCE 6
#define GUARD_ENDS_HOOKS 7
#define SELF_FENCING 8
#ifndef WITHOUT
#define WITHOUT 0
#endif
#define guard(name) (WITHOUT != name)

mtype = { queued, started, sealed, quarantined, absent, running, exited };
#define OVER 0
#define MARGIN 1
#define TRUSTED 2

/* Rows. */
mtype status[PAGES] = queued;
byte owner[PAGES] = NONE;
byte fence[PAGES];
byte lapses[PAGES];
mtype row[WORKERS] = absent;
byte lease[WORKERS];

/* Memory of the workers. held: the fence of a page that it believes to hold, or 0. */
typedef Memory { byte held[PAGES]; bool hooks[PAGES]; bool done[PAGES] };
Memory memory[WORKERS];
bool up[WORKERS];
bool cut_off[WORKERS]; /* frozen, or without its database */
byte faults = FAULTS;

#define ended(p) (status[p] == sealed || status[p] == quarantined)
#define reaches(w) (up[w] && !cut_off[w])
#define runs(w) (memory[w].hooks[0] || memory[w].hooks[1])
#define holds(w, p) (owner[p] == w && fence[p] == memory[w].held[p])

inline die(w) { /* what a process knows ends with it; its hooks are left to the guard process */
  up[w] = false; cut_off[w] = false;
  memory[w].held[0] = 0; memory[w].done[0] = false;
  memory[w].held[1] = 0; memory[w].done[1] = false
}

inline let_go(p) { owner[p] = NONE; status[p] = queued }

inline take(w, p) { /* worker_turn: claim */
  d_step { owner[p] = w; status[p] = started; fence[p] = fence[p] % MOST_CLAIMS + 1 }
  assert(fence[p] < MOST_CLAIMS || !guard(QUARANTINE) || !guard(LAPSE_RELEASES));
  if
  :: memory[w].held[p] = fence[p]; memory[w].hooks[p] = true;
     assert(!memory[1 - w].hooks[p]) /* it runs nowhere else */
  :: faults > 0 -> faults-- /* the answer was lost */
  fi
}

inline drop(w, p) { /* a page of a worker that has lapsed */
  if
  :: owner[p] == w && guard(LAPSE_RELEASES) ->
     if
     :: guard(QUARANTINE) && lapses[p] + 1 >= MAX_LAPSES -> owner[p] = NONE; status[p] = quarantined
     :: else -> d_step { lapses[p] = (guard(QUARANTINE) -> lapses[p] + 1 : 0); let_go(p) }
     fi
  :: else
  fi
}

inline lapse(may, w) { /* lapse_process: the end of a lease releases all that it covered */
  atomic {
    may && row[w] == running && (lease[w] == OVER || !guard(LAPSE_WAITS_FOR_LEASE)) ->
    row[w] = exited;
    drop(w, 0);
    drop(w, 1)
  }
}

proctype Worker(byte w; byte other) {
  byte p;
  do
  :: atomic { !up[w] && row[w] != running -> /* process_join */
       up[w] = true; row[w] = running; lease[w] = TRUSTED }

  :: atomic { reaches(w) && row[w] == running && lease[w] != TRUSTED -> lease[w] = TRUSTED } /* worker_heartbeat */
  :: atomic { reaches(w) && row[w] != running -> die(w) }                                   /* it has lapsed */

  :: atomic { reaches(w) && guard(HEARTBEAT_FINDS_EXTRA) && owner[0] == w && memory[w].held[0] == 0 -> let_go(0) }
  :: atomic { reaches(w) && guard(HEARTBEAT_FINDS_EXTRA) && owner[1] == w && memory[w].held[1] == 0 -> let_go(1) }

  :: atomic { reaches(w) && row[w] == running && lease[w] == TRUSTED &&
       (status[0] == queued || (!guard(CLAIM_SKIPS_OWNED) && status[0] == started && owner[0] == other)) &&
       memory[w].held[0] == 0 && !memory[w].hooks[0] -> take(w, 0) }
  :: atomic { reaches(w) && row[w] == running && lease[w] == TRUSTED &&
       (status[1] == queued || (!guard(CLAIM_SKIPS_OWNED) && status[1] == started && owner[1] == other)) &&
       memory[w].held[1] == 0 && !memory[w].hooks[1] -> take(w, 1) }

  :: atomic { reaches(w) && memory[w].hooks[KILLER] -> die(w) }
  :: atomic { reaches(w) && memory[w].hooks[1 - KILLER] -> /* its hooks have ended */
       memory[w].hooks[1 - KILLER] = false; memory[w].done[1 - KILLER] = true }

  :: atomic { reaches(w) && memory[w].done[1 - KILLER] -> /* worker_turn: finish */
       p = 1 - KILLER;
       if
       :: (holds(w, p) && status[p] == started) || !guard(FENCE) ->
          assert(status[p] != sealed);             /* once */
          assert(fence[p] == memory[w].held[p]);   /* by the latest attempt */
          owner[p] = NONE; status[p] = sealed;
          if
          :: memory[w].done[p] = false; memory[w].held[p] = 0
          :: faults > 0 -> faults-- /* the answer was lost: it asks again */
          fi
       :: else -> memory[w].done[p] = false; memory[w].held[p] = 0
       fi;
       p = 0 }

  :: atomic { reaches(w) && memory[w].held[0] != 0 && !memory[w].hooks[0] && !memory[w].done[0] ->
       if :: holds(w, 0) -> let_go(0) :: else fi; /* worker_turn: release what self-fencing has ended */
       memory[w].held[0] = 0 }
  :: atomic { reaches(w) && memory[w].held[1] != 0 && !memory[w].hooks[1] && !memory[w].done[1] ->
       if :: holds(w, 1) -> let_go(1) :: else fi;
       memory[w].held[1] = 0 }

  :: lapse(reaches(w), other)
  od
}

proctype Runner() { /* the task that lapses workers */
  do
  :: lapse(true, 0)
  :: lapse(true, 1)
  od
}

/* The guard process ends the hooks of a dead worker; a worker ends its own past the trust window. */
proctype Guard(byte w) {
  do
  :: atomic { runs(w) && ((!up[w] && guard(GUARD_ENDS_HOOKS)) ||
                          (up[w] && lease[w] != TRUSTED && guard(SELF_FENCING))) ->
       memory[w].hooks[0] = false; memory[w].hooks[1] = false }
  od
}

/* Time passes over the lease of a worker that cannot heartbeat. The margin is longer than a kill takes. */
proctype Clock(byte w) {
  do
  :: atomic { row[w] == running && lease[w] == TRUSTED && !reaches(w) -> lease[w] = MARGIN }
  :: atomic { row[w] == running && lease[w] == MARGIN && !reaches(w) &&
       (!runs(w) || (up[w] && !guard(SELF_FENCING)) || (!up[w] && !guard(GUARD_ENDS_HOOKS))) ->
       lease[w] = OVER }
  od
}

proctype Fate(byte w) {
  do
  :: atomic { up[w] && faults > 0 -> faults--; die(w) }
  :: atomic { reaches(w) && faults > 0 -> faults--; cut_off[w] = true }
  :: atomic { cut_off[w] -> cut_off[w] = false }
  od
}

init {
  atomic {
    run Worker(0, 1); run Worker(1, 0); run Runner();
    run Guard(0); run Guard(1); run Clock(0); run Clock(1); run Fate(0); run Fate(1)
  }
}

#ifndef TRACE
#define all_ended (ended(0) && ended(1))
ltl every_page_ends { <> all_ended }
#endif
