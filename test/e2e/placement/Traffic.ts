/** Sends turns of one tenant at a steady rate, as far as the server keeps up, and records the result of each. */
import { randomUUID } from "node:crypto"
import { type Contents, query, type Variables } from "./Installation.ts"

export interface SentTurn {
  /** The message, which is unique. */
  readonly text: string
  /** Whether the client got the reply. */
  readonly acknowledged: boolean
  /** Statuses and connection errors of failed attempts. */
  readonly refusals: ReadonlyArray<string>
  /** Milliseconds from the first request to the answer. */
  readonly millis: number
}

export interface Traffic {
  /** Stops sending, and waits for running turns. */
  readonly stop: () => Promise<ReadonlyArray<SentTurn>>
  /** Number of acknowledged turns so far. */
  readonly acknowledged: () => number
  /** The address of the next turn and the latest refusal, for error messages. */
  readonly state: () => { readonly address: string; readonly refusal: string; readonly givenUp: number }
}

interface Options {
  readonly key: string
  readonly name: string
  /** The first address. A 503 with `servedAt` changes it. */
  readonly url: string
  readonly everyMillis: number
  /** Whether refused requests and failed connections are retried, as by clients with an Idempotency-Key. */
  readonly retries: boolean
}

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

const maxAttempts = 400
/** Maximum number of running turns. More would only make an overloaded server slower. */
const maxRunningTurns = 8

export const startTraffic = ({ everyMillis, key, name, retries, url }: Options): Traffic => {
  let address = url
  let isStopped = false
  let acknowledged = 0
  let givenUp = 0
  let refusal = ""
  const turns: Array<Promise<SentTurn>> = []

  const once = async (text: string, idempotencyKey: string) => {
    const response = await fetch(`${address}/v1/chat`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": key, "idempotency-key": idempotencyKey },
      body: JSON.stringify({ message: text, externalEndUserId: `${name}-${Number(text.split(" ")[1]) % 5}` }),
      signal: AbortSignal.timeout(60_000)
    })
    const body = JSON.parse(await response.text())
    const servedAt = body.error?.details?.servedAt
    if (typeof servedAt === "string") address = servedAt
    return { status: response.status, code: String(body.error?.code ?? "") }
  }

  const ask = async (text: string): Promise<SentTurn> => {
    const startedAt = performance.now()
    const idempotencyKey = randomUUID()
    const refusals: Array<string> = []
    for (let attempt = 0; attempt < (retries ? maxAttempts : 1); attempt++) {
      const answer = await once(text, idempotencyKey).catch((error: unknown) => ({
        status: 0,
        code: String(error)
      }))
      if (answer.status === 200) {
        acknowledged += 1
        return { text, acknowledged: true, refusals, millis: performance.now() - startedAt }
      }
      refusal = `${answer.status} ${answer.code}`
      refusals.push(refusal)
      // The answer of a failed turn is stored under this key, so another attempt would get it again.
      if (answer.status === 500) break
      await pause(100)
    }
    givenUp += 1
    return { text, acknowledged: false, refusals, millis: performance.now() - startedAt }
  }

  const loop = (async () => {
    const running = new Set<Promise<unknown>>()
    for (let turn = 0; !isStopped; turn++) {
      const asked = ask(`${name} ${turn} says ${randomUUID()}`)
      turns.push(asked)
      running.add(asked)
      void asked.finally(() => running.delete(asked))
      await pause(everyMillis)
      if (running.size >= maxRunningTurns) await Promise.race(running)
    }
  })()

  return {
    acknowledged: () => acknowledged,
    state: () => ({ address, refusal, givenUp }),
    stop: async () => {
      isStopped = true
      await loop
      return Promise.all(turns)
    }
  }
}

/** Acknowledged turns that are not stored exactly once (`lost`), and turns that are stored twice (`doubled`). */
export const lostOrDoubled = async (
  variables: Variables,
  tenantId: string,
  asked: ReadonlyArray<SentTurn>
) => {
  const rows = await query(
    variables,
    `select m.content as text, count(*)::int as messages,
      (select count(*)::int from agent_runs r where r.tenant_id = m.tenant_id and r.user_message = m.content and r.status = 'complete') as runs
     from messages m where m.tenant_id = '${tenantId}' and m.role = 'user' group by m.tenant_id, m.content`
  )
  const stored = new Map(rows.map(({ messages, runs, text }) => [text, { messages, runs }]))
  return {
    lost: asked
      .filter((turn) => turn.acknowledged && stored.get(turn.text)?.runs !== 1)
      .map(({ text }) => text),
    doubled: asked
      .filter(
        ({ text }) => Number(stored.get(text)?.messages ?? 0) > 1 || Number(stored.get(text)?.runs ?? 0) > 1
      )
      .map(({ text }) => text)
  }
}

export const nothingLost = { lost: [], doubled: [] }

/** The number of rows in all tables. */
export const rowCount = (contents: Contents) =>
  Object.values(contents).reduce((total, rows) => total + rows.length, 0)
