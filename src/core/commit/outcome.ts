/**
 * What one conditional write came to, and what follows (ARCHITECTURE "Outcomes"). A refused write may be our own
 * earlier try; an error says nothing; even `created` is believed only while the base is freshly confirmed, because a
 * name can be created again after somebody deleted it.
 */

/** The store's answer to the conditional write. `error`: none, or one that leaves it open. */
export type WriteAnswer = 'created' | 'exists' | 'error';

/** What the look at the newest version after the write showed. */
export type Look =
  /** The chain of the newest version holds our commit id. */
  | 'own'
  /** It does not, and the target version is another's. */
  | 'other'
  /** It does not, and the target version is missing. */
  | 'missing'
  /** The look itself failed. */
  | 'unreadable';

export type WriteOutcome =
  | 'committed'
  /** Another writer took the target. */
  | 'lost'
  /** Our write created a name that is no longer part of the chain. */
  | 'fenced'
  | 'unknown';

/** True when `created` needs no look: the answer came soon enough after the base was confirmed. */
export function isFresh(confirmedMs: number, answeredMs: number, fenceMs: number): boolean {
  return answeredMs >= confirmedMs && answeredMs - confirmedMs <= fenceMs;
}

/** Outcome of a write that needed a look (everything but a fresh `created`). */
export function classify(answer: WriteAnswer, look: Look): WriteOutcome {
  if (look === 'own') return 'committed';
  if (look === 'unreadable') return 'unknown';
  switch (answer) {
    case 'created':
      // The newest chain was read and does not hold our commit, so what we created is not part of it.
      return 'fenced';
    case 'exists':
      // Something was at the target when the store refused; the newest chain was read after that and is not ours.
      return 'lost';
    case 'error':
      // Missing after an error may still land; only another's version at the target settles it.
      return look === 'other' ? 'lost' : 'unknown';
  }
}
