/** Repeats of a creation with one Idempotency-Key make one thing, also when the process dies on the way. */
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { storeOf } from "../Engines.ts"
import { type Answer, waitForJob, removeFolder, type Spoke, start, temporaryFolder } from "../Spoke.ts"

const variables = { SPOKE_FETCH_ALLOW: "127.0.0.1" }
const together = 10
/** Milliseconds from the first request to the kill; null: at the first answer. */
const rounds = [null, 0, 15] as const

describe("A process killed (-9) among ten concurrent creations with one Idempotency-Key", () => {
  const dataDir = temporaryFolder()
  const site = Http.createServer((_, response) => {
    response.setHeader("content-type", "text/plain; charset=utf-8")
    response.end("The lighthouse was built in 1874.")
  })
  let spoke: Spoke

  beforeAll(async () => {
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve))
    spoke = await start(dataDir, variables)
  }, 60_000)

  afterAll(async () => {
    await spoke.kill()
    site.close()
    removeFolder(dataDir)
  })

  const create = (key: string) => {
    const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`
    return spoke.request("POST", "/v1/sources", {
      body: { type: "URL", name: key, config: { url } },
      headers: { "idempotency-key": key }
    })
  }

  /** What answered before the process was gone. */
  const killedAmong = async (key: string, after: number | null): Promise<ReadonlyArray<Answer>> => {
    const asked = Array.from({ length: together }, () => create(key))
    const answers = Promise.allSettled(asked)
    await (after === null
      ? Promise.any(asked).catch(() => undefined)
      : new Promise((resolve) => setTimeout(resolve, after)))
    await spoke.kill()
    return (await answers).flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []))
  }

  it("has made one source and one job when they are repeated, and every 201 has the same data", async () => {
    for (const [round, after] of rounds.entries()) {
      const key = `round-${round}`
      const before = await killedAmong(key, after)
      spoke = await start(dataDir, variables)
      const repeated = await Promise.all(Array.from({ length: together }, () => create(key)))
      const answers = [...before, ...repeated]
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201))
      const [first] = repeated
      for (const { body } of answers) expect(body.data).toEqual(first?.body.data)
      const job = await waitForJob(spoke, first?.body.data.ingestionJob.id)
      expect(job.body.data.status).toBe("SUCCEEDED")
    }
    await spoke.stop()
    const counts = Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      return yield* sql`
        select s.name, count(distinct s.id)::int as sources, count(j.id)::int as jobs
        from sources s left join ingestion_jobs j on j.source_id = s.id
        where s.name like 'round-%' group by s.name order by s.name`
    })
    const found = await Effect.runPromise(Effect.provide(counts, storeOf(dataDir)))
    expect(found).toEqual(rounds.map((_, round) => ({ name: `round-${round}`, sources: 1, jobs: 1 })))
  }, 120_000)
})
