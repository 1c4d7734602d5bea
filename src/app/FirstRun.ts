/**
 * The first start of an embedded server: creates a tenant with its owner, an agent, a key, and the project's own
 * documentation as the sample source. Everything is created in one transaction, and only once.
 */
import { randomBytes } from "node:crypto"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { zipSync } from "fflate"
import { ArtifactStore } from "../capabilities/ArtifactStore.ts"
import { sampleSource } from "../domain/agents/Start.ts"
import type { AgentScope } from "../domain/accounts/Access.ts"
import type { IngestionJobId } from "../domain/Ids.ts"
import { Accounts } from "../usecases/accounts/Accounts.ts"
import { Agents } from "../usecases/agents/Agents.ts"
import { Keys } from "../usecases/accounts/Keys.ts"
import { Sources } from "../usecases/knowledge/Sources.ts"
import type { Settings } from "./config/Config.ts"
import * as DataDirectory from "./DataDirectory.ts"
import * as FirstOwner from "./FirstOwner.ts"

/** The tenant and agent that the first start created. Key and password are shown once. */
export interface FirstRun {
  readonly scope: AgentScope
  readonly apiKey: Redacted.Redacted
  readonly email: string
  /** None when the password was configured. */
  readonly password: Option.Option<Redacted.Redacted>
  readonly jobId: IngestionJobId | null
}

const instructions = `You are the guide to Spoke, a service that runs AI agents which answer chat messages from a knowledge base.
Answer developers' questions briefly and exactly, with the command or the route they need.`

/** The questions are answered by the documentation, also without a model. */
const greeting = `Hello! I have read the documentation of Spoke. Ask me, for example:

- How do I add a source?
- How do I put the chat on a page?
- What does a backup hold?`

/** The pages of the documentation as a ZIP with reproducible bytes. The start page is left out: it has only links. */
const zipDocs = (docs: string) =>
  Effect.tryPromise(async () => {
    const names = (await fs.readdir(docs))
      .filter((name) => name.endsWith(".md") && name !== "README.md")
      .sort()
    const entries = await Promise.all(
      names.map(async (name) => [name, new Uint8Array(await fs.readFile(path.join(docs, name)))] as const)
    )
    return zipSync(Object.fromEntries(entries), { mtime: "1980-01-01" })
  }).pipe(Effect.orDie)

const hasNoTenants = Effect.gen(function* () {
  const accounts = yield* Accounts
  const { rows } = yield* accounts.listTenants({ limit: 1 })
  return rows.length === 0
})

const createAll = (settings: Settings, docs: string) =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const agents = yield* Agents
    const keys = yield* Keys
    const sources = yield* Sources
    const { email } = settings.admin
    const generated = Redacted.make(randomBytes(12).toString("base64url"))
    const password = Option.getOrElse(settings.admin.password, () => generated)
    const { tenant } = yield* accounts.createTenant(yield* FirstOwner.tenantOf(settings, password))
    const agent = yield* agents.create(
      { tenantId: tenant.id },
      { name: "Spoke guide", instructions, greeting }
    )
    const { secret } = yield* keys.create({ tenantId: tenant.id }, agent.id, {
      name: "First key",
      permissions: ["*"]
    })
    const scope: AgentScope = { tenantId: tenant.id, agentId: agent.id }
    const { ingestionJob } = yield* sources.upload(scope, sampleSource.type, {
      name: sampleSource.name,
      fileName: "docs.zip",
      bytes: yield* zipDocs(docs)
    })
    // Before the commit: if the process ends in between, the next start repeats everything and overwrites this file.
    yield* DataDirectory.credentials.write(settings.dataDir, { url: settings.appUrl, apiKey: secret })
    const created: FirstRun = {
      scope,
      apiKey: secret,
      email,
      password: Option.isSome(settings.admin.password) ? Option.none() : Option.some(generated),
      jobId: ingestionJob?.id ?? null
    }
    return created
  })

/** Stores the current address for the command line; an earlier start may have had another one. */
export const rememberAddress = ({ appUrl, dataDir }: Settings) =>
  Effect.gen(function* () {
    const stored = yield* DataDirectory.credentials.read(dataDir)
    if (Option.isNone(stored) || stored.value.url === appUrl) return
    yield* DataDirectory.credentials.write(dataDir, { ...stored.value, url: appUrl })
  })

/** None when a tenant exists. `docs` is the folder of the project's documentation. */
export const run = Effect.fn("FirstRun.run")(function* (settings: Settings, docs: string) {
  if (!(yield* hasNoTenants)) return Option.none<FirstRun>()
  const sql = yield* SqlClient.SqlClient
  const artifacts = yield* ArtifactStore
  yield* artifacts.put(yield* zipDocs(docs))
  return Option.some(yield* sql.withTransaction(createAll(settings, docs)))
})
