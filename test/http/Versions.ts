/** The contract of `If-Match` and versions, for every route that changes a resource. */
import * as Effect from "effect/Effect"
import { expect } from "vitest"
import { call } from "./accounts/AccountsServer.ts"

/**
 * Changes of the newest version succeed. A change of an older version is 409 and changes nothing. Of concurrent changes of
 * one version exactly one succeeds. `name` is the field of the answer with the resource.
 */
export const expectVersioned = (
  path: string,
  name: string,
  cookie: string,
  change: (place: number) => Readonly<Record<string, unknown>>
) =>
  Effect.gen(function* () {
    const patch = (place: number, version?: string) =>
      call("PATCH", path, {
        cookie,
        body: change(place),
        ...(version === undefined ? {} : { headers: { "if-match": version } })
      })
    const first = yield* patch(1)
    const { version } = first.data[name]
    expect(version).toBeGreaterThan(1)
    const second = yield* patch(2, `"${version}"`)
    expect([second.status, second.data[name].version]).toEqual([200, version + 1])
    const late = yield* patch(3, `"${version}"`)
    expect([late.status, late.error.code, late.error.details]).toEqual([
      409,
      "CONFLICT",
      { version: version + 1 }
    ])
    const racing = yield* Effect.all(
      [4, 5, 6, 7].map((place) => patch(place, `"${version + 1}"`)),
      { concurrency: 4 }
    )
    expect(racing.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409])
    const passed = racing.findIndex(({ status }) => status === 200)
    const now = yield* patch(4 + passed, "*")
    expect(now.data[name]).toMatchObject({ ...change(4 + passed), version: version + 3 })
    const malformed = yield* patch(1, String(version))
    expect([malformed.status, malformed.error.code]).toEqual([400, "VALIDATION_ERROR"])
  })
