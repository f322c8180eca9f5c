// Branches of a conversation: other answers to a message and other wordings of it, each with what followed.
//
// `messages` is the branch that is shown. `forks` has an entry `{at, shown, tails}` for each place that has others:
// `tails` are `{messages, forks}` in the order in which they were begun, and null at `shown`, which is in `messages`.
// Nothing is changed in place: these functions return the new `{messages, forks}`.

/** The same conversation with its end from a place on put aside, so that another one can be begun there. */
export function forked(conversation, at) {
  const { shown, tails } = forkOf(conversation, at);
  const kept = tails.with(shown, tail(conversation, at));
  return {
    messages: conversation.messages.slice(0, at),
    forks: [...before(conversation, at), { at, shown: kept.length, tails: [...kept, null] }],
  };
}

/** The conversation with another branch of a place shown. */
export function switched(conversation, at, which) {
  const { shown, tails } = forkOf(conversation, at);
  const kept = tails.with(shown, tail(conversation, at)), { messages, forks } = kept[which];
  return {
    messages: [...conversation.messages.slice(0, at), ...messages],
    forks: [...before(conversation, at), { at, shown: which, tails: kept.with(which, null) }, ...forks],
  };
}

/** The conversation without the messages of a stretch; where that is a branch, the one beside it is shown instead. */
export function without(conversation, from, to) {
  const { shown, tails } = forkOf(conversation, from);
  if (tails.length > 1) {
    const next = switched(conversation, from, shown > 0 ? shown - 1 : 1);
    const rest = tails.length > 2 ? [{ at: from, shown: Math.max(0, shown - 1), tails: forkOf(next, from).tails.toSpliced(shown, 1) }] : [];
    return { messages: next.messages, forks: next.forks.flatMap((fork) => (fork.at === from ? rest : [fork])) };
  }
  return {
    messages: conversation.messages.toSpliced(from, to - from),
    forks: conversation.forks.flatMap((fork) => {
      if (fork.at < from) return [fork];
      return fork.at < to ? [] : [{ ...fork, at: fork.at - (to - from) }];
    }),
  };
}

const before = ({ forks }, at) => forks.filter((fork) => fork.at < at);
const forkOf = ({ forks }, at) => forks.find((fork) => fork.at === at) ?? { at, shown: 0, tails: [null] };

/** What is shown from a place on. Forks of a tail count from the beginning of the conversation, too. */
function tail({ messages, forks }, at) {
  return { messages: messages.slice(at), forks: forks.filter((fork) => fork.at > at) };
}
