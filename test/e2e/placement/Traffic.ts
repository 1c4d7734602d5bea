/** Turns of one tenant at a steady pace, as far as the server keeps up, and what became of each. */
import { randomUUID } from "node:crypto"
import { type Contents, query, type Variables } from "./Installation.ts"

export interface Asked {
  /** The message; no other turn has it. */
  readonly text: string
  /** The reply was reported. */
  readonly acknowledged: boolean
  /** Statuses and connection errors before that, or at all. */
  readonly refusals: ReadonlyArray<string>
  /** Milliseconds from the first request to the answer. */
  readonly took: number
}

export interface Traffic {
  /** Ends it, and waits for the turns under way. */
  readonly stop: () => Promise<ReadonlyArray<Asked>>
  /** How many turns were acknowledged so far. */
  readonly acknowledged: () => number
  /** Where the next turn goes, and the latest refusal, for messages. */
  readonly state: () => { readonly address: string; readonly refusal: string; readonly givenUp: number }
}

interface Options {
  readonly key: string
  readonly name: string
  /** Where callers begin; a 503 that says where the account is served sends them there. */
  readonly url: string
  readonly everyMillis: number
  /** Also asks again when a request is refused or the connection fails, as clients do with an Idempotency-Key. */
  readonly retries: boolean
}

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

const attempts = 400
/** Turns under way; a server with more to do than it can would only get slower. */
const atOnce = 8

export const startTraffic = ({ everyMillis, key, name, retries, url }: Options): Traffic => {
  let address = url
  let running = true
  let acknowledged = 0
  let givenUp = 0
  let refusal = ""
  const turns: Array<Promise<Asked>> = []

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

  const ask = async (text: string): Promise<Asked> => {
    const began = performance.now()
    const idempotencyKey = randomUUID()
    const refusals: Array<string> = []
    for (let attempt = 0; attempt < (retries ? attempts : 1); attempt++) {
      const answer = await once(text, idempotencyKey).catch((error: unknown) => ({
        status: 0,
        code: String(error)
      }))
      if (answer.status === 200) {
        acknowledged += 1
        return { text, acknowledged: true, refusals, took: performance.now() - began }
      }
      refusal = `${answer.status} ${answer.code}`
      refusals.push(refusal)
      // A failed turn has its own answer under this key.
      if (answer.status === 500) break
      await pause(100)
    }
    givenUp += 1
    return { text, acknowledged: false, refusals, took: performance.now() - began }
  }

  const loop = (async () => {
    const underWay = new Set<Promise<unknown>>()
    for (let turn = 0; running; turn++) {
      const asked = ask(`${name} ${turn} says ${randomUUID()}`)
      turns.push(asked)
      underWay.add(asked)
      void asked.finally(() => underWay.delete(asked))
      await pause(everyMillis)
      if (underWay.size >= atOnce) await Promise.race(underWay)
    }
  })()

  return {
    acknowledged: () => acknowledged,
    state: () => ({ address, refusal, givenUp }),
    stop: async () => {
      running = false
      await loop
      return Promise.all(turns)
    }
  }
}

/** Turns whose reply was reported and is not stored exactly once, and turns that are stored twice. */
export const lostOrDoubled = async (variables: Variables, tenantId: string, asked: ReadonlyArray<Asked>) => {
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

/** How many rows there are in all. */
export const rowCount = (contents: Contents) =>
  Object.values(contents).reduce((total, rows) => total + rows.length, 0)
