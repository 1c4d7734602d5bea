/** Replaces a capability of Spoke by one of the host: the audit trail is also written to the host's list. */
import * as Fs from "node:fs/promises"
import * as Os from "node:os"
import * as Path from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { AuditLog, AuditLogSql, createSpoke } from "spoke/effect"

const written = []

/** Spoke's own layer does the work. This one also records the entries. */
const audit = Layer.effect(
  AuditLog,
  Effect.map(AuditLog, (own) => ({
    ...own,
    record: (entry) => Effect.tap(own.record(entry), () => Effect.sync(() => written.push(entry.action)))
  }))
).pipe(Layer.provide(AuditLogSql.layerSql))

const dataDir = await Fs.mkdtemp(Path.join(Os.tmpdir(), "spoke-example-"))
const spoke = await createSpoke({ dataDir }, { replace: audit })
await spoke.agents.create({ name: "Watched" })
process.stdout.write(`${written.join("\n")}\n`)

await spoke.close()
await Fs.rm(dataDir, { recursive: true })
