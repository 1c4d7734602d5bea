/** Compares what is stored with what was answered. Each sentence that it returns is a broken guarantee (docs/design/guarantees.md). */
import type { Asked, Found, History, StoredMessage } from "./History.ts"

export const maxAnswerMs = 70_000

const good = ({ status }: Asked) => status >= 200 && status < 300

const countOf = <A>(all: ReadonlyArray<A>, key: (one: A) => string) => {
  const counts = new Map<string, number>()
  for (const one of all) counts.set(key(one), (counts.get(key(one)) ?? 0) + 1)
  return counts
}

/** Failures that are documented: a code in the envelope, and of the server's own only these. */
const documented = ({ code, status }: Asked) =>
  status === 0 || status < 400
    ? true
    : code !== null &&
      (status < 500 || (status === 500 ? code === "TURN_FAILED" : status === 503 || status === 504))

const answers = ({ asked }: History) => [
  ...asked
    .filter((one) => !documented(one))
    .map(({ code, kind, status }) => `${kind} was answered ${status} ${code ?? "without an envelope"}`),
  ...asked
    .filter(({ milliseconds }) => milliseconds > maxAnswerMs)
    .map(({ kind, milliseconds }) => `${kind} took ${Math.round(milliseconds)} ms`)
]

const turns = (history: History, found: Found) => {
  const asking = new Map<string, Array<StoredMessage>>()
  for (const message of found.messages)
    if (message.role === "user")
      asking.set(message.content, [...(asking.get(message.content) ?? []), message])
  const at = new Map(found.messages.map((one) => [`${one.conversationId} ${one.position}`, one]))
  const runs = new Map(found.runs.map((run) => [run.userMessageId, run]))
  return history.turns.flatMap(({ done, mark, persist }) => {
    const stored = asking.get(mark) ?? []
    if (!persist) return stored.length === 0 ? [] : [`turn ${mark} was not to be stored, and is`]
    if (stored.length > 1) return [`turn ${mark} is stored ${stored.length} times`]
    const [user] = stored
    if (!done) return []
    if (user === undefined) return [`turn ${mark} was answered and is not stored`]
    const run = runs.get(user.id)
    const reply = at.get(`${user.conversationId} ${user.position + 1}`)
    const whole = reply?.role === "assistant" && run?.status === "complete" && run.messageId === reply.id
    if (!whole) return [`turn ${mark} was answered and is not stored whole`]
    return run.last === "run.completed"
      ? []
      : [`the trace of turn ${mark} ends with ${run.last ?? "nothing"}`]
  })
}

const rest = ({ ingestionJobs, jobs, runs, sources }: Found) => [
  ...runs.filter(({ status }) => status === "running").map(({ id }) => `run ${id} is still running`),
  ...sources
    .filter(({ lastError, status }) => !(status === "READY" || (status === "FAILED" && lastError !== null)))
    .map(({ name, status }) => `source ${name} is ${status}, without a reason`),
  ...ingestionJobs
    .filter(
      ({ error, status }) =>
        !["SUCCEEDED", "CANCELLED"].includes(status) && !(status === "FAILED" && error !== null)
    )
    .map(({ id, status }) => `ingestion job ${id} is ${status}, without a reason`),
  ...jobs.map(({ id, queue, state }) => `job ${id} of ${queue} is still ${state}`)
]

const sources = ({ creations, deletions }: History, found: Found) => {
  const names = countOf(found.sources, ({ name }) => name)
  const gone = new Set(deletions.filter(good).map(({ sourceId }) => sourceId))
  const maybe = new Set(deletions.map(({ sourceId }) => sourceId))
  const ids = new Set(found.sources.map(({ id }) => id))
  const data = new Map<string, string>()
  return [
    ...creations.flatMap((one) => {
      const { idempotencyKey, mark, sourceId } = one
      const said = []
      if ((names.get(mark) ?? 0) > 1) said.push(`source ${mark} is there ${names.get(mark)} times`)
      if (good(one) && sourceId !== null && !maybe.has(sourceId) && !ids.has(sourceId))
        said.push(`source ${mark} was created and is not there`)
      if (good(one) && idempotencyKey !== null) {
        const first = data.get(idempotencyKey) ?? one.data
        data.set(idempotencyKey, first)
        if (first !== one.data) said.push(`repeats with key ${idempotencyKey} were answered differently`)
      }
      return said
    }),
    ...[...gone].filter((id) => ids.has(id)).map((id) => `source ${id} was deleted and is there`),
    ...found.retrievable.map((mark) => `deleted source ${mark} is still found`)
  ]
}

const channels = ({ deliveries }: History, found: Found) => {
  const inbox = countOf(found.inbox, ({ messageId }) => messageId)
  const stored = countOf(
    found.messages.filter(({ channelMessageId }) => channelMessageId !== null),
    ({ channelMessageId }) => channelMessageId ?? ""
  )
  const accepted = new Set(deliveries.filter(good).map(({ messageId }) => messageId))
  const times = new Set(deliveries.map(({ messageId }) => messageId))
  return [
    ...[...times].flatMap((id) => {
      const wrong = (count: number) => (accepted.has(id) ? count !== 1 : count > 1)
      return [
        ...(wrong(inbox.get(id) ?? 0) ? [`delivery ${id} is in the inbox ${inbox.get(id) ?? 0} times`] : []),
        ...(wrong(stored.get(id) ?? 0) ? [`delivery ${id} is stored ${stored.get(id) ?? 0} times`] : [])
      ]
    }),
    ...found.inbox
      .filter(({ state }) => state === "queued")
      .map(({ messageId }) => `delivery ${messageId} waits`),
    ...found.outbox.flatMap(({ id, lastError, resent, state }) => {
      const taken = found.taken.get(id) ?? 0
      if (taken > (resent ? 2 : 1)) return [`reply ${id} was sent ${taken} times`]
      if (state === "sent") return taken > 0 ? [] : [`reply ${id} is marked as sent, and was not`]
      return state === "cancelled" || (state === "failed" && lastError !== null)
        ? []
        : [`reply ${id} is ${state}`]
    })
  ]
}

const humans = ({ said, takings }: History, { messages }: Found) => {
  const by = countOf(
    messages.filter(({ author }) => author === "human"),
    ({ content }) => content
  )
  return [
    ...said.flatMap((one) => {
      const count = by.get(one.mark) ?? 0
      return (good(one) ? count !== 1 : count > 1)
        ? [`what a human said, ${one.mark}, is stored ${count} times`]
        : []
    }),
    ...takings
      .filter(good)
      .flatMap(({ at, conversationId }) =>
        messages
          .filter(
            (one) => one.conversationId === conversationId && one.author === "agent" && one.createdAt > at
          )
          .map(({ id }) => `the agent wrote ${id} after a human had taken over`)
      )
  ]
}

/** Turns with an unknown outcome may or may not be counted; all others must add up. */
const counters = (history: History, found: Found) => {
  const complete = found.runs.filter(({ status }) => status === "complete").length
  const failed = found.runs.length - complete
  const passing = history.turns.filter(({ persist }) => !persist)
  const least = complete + passing.filter(({ done }) => done).length
  const maxCounted = complete + failed + passing.length
  const said = []
  if (found.counted < least || found.counted > maxCounted)
    said.push(`${found.counted} turns are counted, of ${least} to ${maxCounted}`)
  // What a killed process had reserved for a turn that is not stored is lost with it.
  const open = passing.filter(({ done }) => !done).length
  if (found.reserved < found.counted || found.reserved > found.counted + open)
    said.push(`${found.reserved} turns are reserved and ${found.counted} counted, with ${open} unknown`)
  return said
}

const payments = (history: History, found: Found) => {
  const events = new Map(history.payments.map(({ credits, eventId }) => [eventId, credits]))
  const accepted = new Set(history.payments.filter(good).map(({ eventId }) => eventId))
  const open = [...events.keys()].filter((id) => !accepted.has(id))
  const wanted = [...events].reduce((sum, [id, credits]) => sum + (accepted.has(id) ? credits : 0), 0)
  if (open.length > 0) return [`payments ${open.join()} were never accepted`]
  return found.granted === wanted ? [] : [`${found.granted} credits are granted for ${wanted}`]
}

/** Whatever the order in which they came: what happened last is what holds. */
const plan = ({ plans }: History, found: Found) => {
  const accepted = new Set(plans.filter(good).map(({ eventId }) => eventId))
  const open = plans.filter(({ eventId }) => !accepted.has(eventId))
  if (open.length > 0)
    return [`plans ${[...new Set(open.map(({ eventId }) => eventId))].join()} were never accepted`]
  const last = plans.toSorted((a, b) => a.created - b.created).at(-1)
  return last === undefined || last.plan === found.plan
    ? []
    : [`the tenant is on plan ${found.plan}, and was last told to be on ${last.plan}`]
}

const keys = ({ revocations }: History, { revoked }: Found) =>
  revocations
    .filter((one) => good(one) && revoked.get(one.keyId) !== 401)
    .map(({ keyId }) => `revoked key ${keyId} is answered ${revoked.get(keyId)}`)

const pages = ({ listed, messages, walked }: Found) => {
  const same = (what: string, seen: ReadonlyArray<string>, wanted: ReadonlyArray<string>) => [
    ...(new Set(seen).size === seen.length ? [] : [`the walk of ${what} doubles something`]),
    ...wanted.filter((id) => !seen.includes(id)).map((id) => `the walk of ${what} loses ${id}`)
  ]
  const of = new Map<string, Array<string>>()
  for (const { conversationId, id } of messages)
    of.set(conversationId, [...(of.get(conversationId) ?? []), id])
  return [
    ...same("conversations", walked.conversations, listed),
    ...[...walked.messages].flatMap(([id, seen]) => same(id, seen, of.get(id) ?? []))
  ]
}

/** Nothing, when every promise is kept. */
export const judge = (history: History, found: Found): ReadonlyArray<string> => [
  ...answers(history),
  ...turns(history, found),
  ...rest(found),
  ...sources(history, found),
  ...channels(history, found),
  ...humans(history, found),
  ...counters(history, found),
  ...payments(history, found),
  ...plan(history, found),
  ...keys(history, found),
  ...pages(found)
]
