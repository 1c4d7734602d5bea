import { layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import { expect } from "vitest"
import { maxUploadBytes } from "../../../src/http/public/knowledge/SourcesApi.ts"
import { MiB } from "../../../src/domain/Bytes.ts"
import { keyHeader, layer as PublicServer, Script } from "../PublicServer.ts"
import { expectData, expectError, TestServer } from "../TestServer.ts"

const call = (method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) =>
  Effect.flatMap(TestServer, (server) =>
    server.call(method, path, { headers: { ...keyHeader("spk_all"), ...headers }, body })
  )

/** What the use-case was last asked. */
const lastAsked = Effect.flatMap(Script, ({ asked }) => Effect.map(Ref.get(asked), (all) => all.at(-1)))

const web = { type: "URL", name: "Handbook", config: { url: "https://example.test/" } }

layer(PublicServer, { excludeTestServices: true })("/v1/sources", (it) => {
  it.effect("lists with lastSyncedAt and lastError, 20 by default", () =>
    Effect.gen(function* () {
      const { sources } = expectData(yield* call("GET", "/v1/sources"))
      expect(sources[0]).toEqual({
        id: "src_2",
        agentId: "agt_1",
        type: "URL",
        name: "Handbook",
        status: "READY",
        config: { url: "https://example.test/" },
        lastSyncedAt: "2025-01-02T03:04:05.678Z",
        lastError: null,
        latestJob: {
          id: "job_1",
          type: "INGEST",
          status: "SUCCEEDED",
          progress: 100,
          chunksCreated: 3,
          error: null
        }
      })
      expect((yield* lastAsked)?.args[1]).toMatchObject({ limit: 20 })
    })
  )

  it.effect("applies known status and type filters, and does not apply others", () =>
    Effect.gen(function* () {
      expectData(yield* call("GET", "/v1/sources?limit=100&status=READY&type=URL"))
      expect((yield* lastAsked)?.args[1]).toMatchObject({ limit: 100, status: "READY", type: "URL" })
      for (const query of ["status=ready&type=x", "status=&type=", "status=READY&status=PENDING&type=%00"]) {
        expectData(yield* call("GET", `/v1/sources?${query}`))
        expect((yield* lastAsked)?.args[1]).toMatchObject({ status: undefined, type: undefined })
      }
    })
  )

  it.effect("pages by an opaque cursor until nextCursor is null", () =>
    Effect.gen(function* () {
      const { nextCursor } = expectData(yield* call("GET", "/v1/sources?status=READY"))
      const next = yield* call("GET", `/v1/sources?status=READY&cursor=${encodeURIComponent(nextCursor)}`)
      expect(expectData(next)).toMatchObject({ sources: [{ id: "src_1" }], nextCursor: null })
      expect((yield* lastAsked)?.args[1]).toMatchObject({ after: "src_2" })
    })
  )

  it.effect("refuses a cursor of another agent or filter, a forged one and a tampered one with 400", () =>
    Effect.gen(function* () {
      const { nextCursor } = expectData(yield* call("GET", "/v1/sources"))
      const cursor = encodeURIComponent(nextCursor)
      const other = keyHeader("spk_other")
      expectError(
        yield* call("GET", `/v1/sources?cursor=${cursor}`, undefined, other),
        400,
        "VALIDATION_ERROR"
      )
      expectError(yield* call("GET", `/v1/sources?type=URL&cursor=${cursor}`), 400, "VALIDATION_ERROR")
      const forged = ["src_2", "", "a.b", `${nextCursor}x`, `x${nextCursor}`, "x".repeat(2_000)]
      for (const given of forged) {
        const answer = yield* call("GET", `/v1/sources?cursor=${encodeURIComponent(given)}`)
        expectError(answer, 400, "VALIDATION_ERROR")
        expect(answer.json.error.details.issues[0].path).toEqual(["cursor"])
      }
    })
  )

  it.effect("creates with 201, the source and its job", () =>
    Effect.gen(function* () {
      const data = expectData(yield* call("POST", "/v1/sources", web), 201)
      expect(data).toEqual({
        source: {
          id: "src_1",
          agentId: "agt_1",
          type: "URL",
          name: "Handbook",
          status: "READY",
          config: { url: "https://example.test/" }
        },
        ingestionJob: { id: "job_1", status: "QUEUED" }
      })
      const archive = { type: "BULK_UPLOAD", name: "Archive" }
      expectData(yield* call("POST", "/v1/sources", archive), 201)
      expect((yield* lastAsked)?.args[1]).toMatchObject({ ...archive, config: {} })
      const later = yield* call("POST", "/v1/sources", { ...web, autoSync: false })
      expect(expectData(later, 201).ingestionJob).toBeNull()
    })
  )

  it.effect("accepts only an Idempotency-Key of 1 to 255 visible ASCII characters", () =>
    Effect.gen(function* () {
      for (const key of ["a", "!~", "x".repeat(255)]) {
        expectData(yield* call("POST", "/v1/sources", web, { "idempotency-key": key }), 201)
        expect((yield* lastAsked)?.args[2]).toBe(key)
      }
      for (const key of ["", "a b", "x".repeat(256), "ä"]) {
        const answer = yield* call("POST", "/v1/sources", web, { "idempotency-key": key })
        expectError(answer, 400, "VALIDATION_ERROR")
        expect(answer.json.error.details.issues[0].path).toEqual(["idempotency-key"])
      }
    })
  )

  it.effect("refuses a config that does not fit the type, naming the field", () =>
    Effect.gen(function* () {
      const bodies: ReadonlyArray<readonly [unknown, ReadonlyArray<string>]> = [
        [{ ...web, type: "FTP" }, ["type"]],
        [{ ...web, config: {} }, ["config", "url"]],
        [{ ...web, config: { url: "file:///etc/passwd" } }, ["config", "url"]],
        [{ ...web, config: { url: "https://example.test/", maxDepth: 6 } }, ["config", "maxDepth"]],
        [{ ...web, name: "  " }, ["name"]],
        [{ ...web, autoSync: null }, ["autoSync"]]
      ]
      for (const [body, path] of bodies) {
        const answer = yield* call("POST", "/v1/sources", body)
        expectError(answer, 400, "VALIDATION_ERROR")
        expect(answer.json.error.details.issues[0].path).toEqual(path)
      }
    })
  )

  it.effect("fetches one with error and latestJob, and answers an unknown id with 404 NOT_FOUND", () =>
    Effect.gen(function* () {
      const data = expectData(yield* call("GET", "/v1/sources/src_1"))
      expect(Object.keys(data).sort()).toEqual([
        "agentId",
        "config",
        "error",
        "id",
        "latestJob",
        "name",
        "status",
        "type"
      ])
      expectError(yield* call("GET", "/v1/sources/src_9"), 404, "NOT_FOUND")
    })
  )

  it.effect("changes name or config, at least one, and neither to null", () =>
    Effect.gen(function* () {
      const config = { url: "https://example.test/new" }
      const data = expectData(yield* call("PATCH", "/v1/sources/src_1", { name: " Guide ", config }))
      expect(data).toEqual({
        id: "src_1",
        agentId: "agt_1",
        name: "Handbook",
        type: "URL",
        status: "READY"
      })
      expect((yield* lastAsked)?.args[2]).toEqual({ name: "Guide", config })
      for (const body of [
        {},
        { name: null },
        { config: null },
        { name: " " },
        { config: [] },
        { other: 1 }
      ]) {
        expectError(yield* call("PATCH", "/v1/sources/src_1", body), 400, "VALIDATION_ERROR")
      }
      expectError(yield* call("PATCH", "/v1/sources/src_9", { name: "x" }), 404, "NOT_FOUND")
    })
  )

  it.effect("deletes with { id, deleted: true }, or returns why it cannot", () =>
    Effect.gen(function* () {
      expect(expectData(yield* call("DELETE", "/v1/sources/src_1"))).toEqual({ id: "src_1", deleted: true })
      expectError(yield* call("DELETE", "/v1/sources/src_9"), 404, "NOT_FOUND")
      expectError(yield* call("DELETE", "/v1/sources/src_running"), 409, "ARTIFACT_DELETE_CONFLICT")
      expectError(yield* call("DELETE", "/v1/sources/src_unqueued"), 503, "ARTIFACT_DELETE_UNAVAILABLE")
      for (const method of ["PATCH", "DELETE"]) {
        const answer = yield* call(method, "/v1/sources/src_1", { name: "x" }, keyHeader("spk_chat"))
        expectError(answer, 403, "FORBIDDEN")
      }
    })
  )

  it.effect("syncs with 202, force or not, with or without a body", () =>
    Effect.gen(function* () {
      const data = expectData(yield* call("POST", "/v1/sources/src_1/sync", { force: true }), 202)
      expect(data).toEqual({ jobId: "job_1", status: "QUEUED", sourceId: "src_1" })
      expect((yield* lastAsked)?.args[2]).toEqual({ force: true })
      expectData(yield* call("POST", "/v1/sources/src_1/sync"), 202)
      expect((yield* lastAsked)?.args[2]).toEqual({ force: false })
      expectError(yield* call("POST", "/v1/sources/src_1/sync", { force: "yes" }), 400, "VALIDATION_ERROR")
    })
  )

  it.effect("records each change, by the key, with the source and the request, and no failed one", () =>
    Effect.gen(function* () {
      const { audited } = yield* Script
      yield* Ref.set(audited, [])
      const created = yield* call("POST", "/v1/sources", web)
      yield* call("PATCH", "/v1/sources/src_1", { name: "Manual" })
      yield* call("PATCH", "/v1/sources/src_2", { name: "Manual" })
      yield* call("POST", "/v1/sources/src_1/sync")
      yield* call("DELETE", "/v1/sources/src_1")
      yield* call("DELETE", "/v1/sources/src_running")
      yield* call("GET", "/v1/sources/src_1")
      const entries = yield* Ref.get(audited)
      expect(entries.map(({ action }) => action)).toEqual([
        "source.create",
        "source.update",
        "source.sync",
        "source.delete"
      ])
      for (const entry of entries)
        expect(entry).toMatchObject({
          tenantId: "ten_1",
          actor: { type: "key", id: "key_1" },
          target: "src_1"
        })
      expect(entries[0]?.requestId).toBe(created.headers.get("x-request-id"))
    })
  )

  it.effect("records a repeat too, because the entry of the first request may be missing", () =>
    Effect.gen(function* () {
      const { audited } = yield* Script
      const create = call("POST", "/v1/sources", web, { "idempotency-key": "handbook" })
      yield* create
      yield* Ref.set(audited, [])
      expectData(yield* create, 201)
      expect(yield* Ref.get(audited)).toMatchObject([{ action: "source.create", target: "src_1" }])
    })
  )

  it.effect("returns a job's status", () =>
    Effect.gen(function* () {
      expect(expectData(yield* call("GET", "/v1/ingestion-jobs/job_1"))).toEqual({
        id: "job_1",
        sourceId: "src_1",
        type: "INGEST",
        status: "QUEUED",
        progress: 0,
        chunksCreated: null,
        error: null,
        startedAt: null,
        completedAt: null
      })
      expectError(yield* call("GET", "/v1/ingestion-jobs/job_9"), 404, "NOT_FOUND")
    })
  )
})

const form = (
  size: number,
  fields: Readonly<Record<string, string>> = {},
  fileName = "a b.md",
  field = "file"
) => {
  const made = new FormData()
  for (const [name, value] of Object.entries(fields)) made.append(name, value)
  made.append(field, new Blob([new Uint8Array(size)]), fileName)
  return made
}

const upload = (body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  call("POST", "/v1/sources/upload", body, headers)

layer(PublicServer, { excludeTestServices: true })("POST /v1/sources/upload", (it) => {
  it.effect("creates a source from the one file of a form, named by the form or by the file", () =>
    Effect.gen(function* () {
      expectData(yield* upload(form(10, { name: " Handbook " })), 201)
      expect((yield* lastAsked)?.args.slice(1)).toEqual([
        "FILE",
        { name: "Handbook", fileName: "a b.md", labels: [], bytes: 10 }
      ])
      expectData(yield* upload(form(0)), 201)
      expect((yield* lastAsked)?.args[2]).toEqual({
        name: "a b.md",
        fileName: "a b.md",
        labels: [],
        bytes: 0
      })
      // Larger than a JSON body may be.
      expectData(yield* upload(form(3 * MiB)), 201)
      expect((yield* lastAsked)?.args[2]).toMatchObject({ bytes: 3 * MiB })
    })
  )

  it.effect("refuses a file over 50 MiB, and a much larger body", () =>
    Effect.gen(function* () {
      expectError(yield* upload(form(maxUploadBytes + 1)), 400, "FILE_TOO_LARGE")
      expectError(yield* upload(form(maxUploadBytes + 2 * MiB)), 413, "PAYLOAD_TOO_LARGE")
    })
  )

  it.effect("refuses anything but a form with exactly one file", () =>
    Effect.gen(function* () {
      const two = form(1)
      two.append("file", new Blob(["x"]), "b.md")
      const none = new FormData()
      none.append("file", "text")
      const boundary = { "content-type": "multipart/form-data; boundary=x" }
      const bodies: ReadonlyArray<readonly [unknown, Readonly<Record<string, string>>]> = [
        [two, {}],
        [none, {}],
        [form(1, {}, "a.md", "document"), {}],
        [form(1, { name: " " }), {}],
        [{ file: "x" }, {}],
        ["--x\r\nnothing", boundary],
        ["", boundary],
        ["--x--\r\n", { "content-type": "multipart/form-data" }]
      ]
      for (const [body, headers] of bodies) expectError(yield* upload(body, headers), 400, "VALIDATION_ERROR")
    })
  )
})
