/** The agents of a tenant. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { KeyStore } from "../../capabilities/KeyStore.ts"
import { offeredNames, type ToolSource, ToolSources } from "../../capabilities/ToolSources.ts"
import { afterCommit } from "../../concurrency/AfterCommit.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { Actor } from "../../domain/accounts/Audit.ts"
import type { CreateAgent, PatchAgent } from "../../domain/agents/Agent.ts"
import { ServiceUnavailable, ValidationError, invalidField, noSuch, orNoSuch } from "../../domain/Errors.ts"
import { type AgentId, newId } from "../../domain/Ids.ts"
import { hint } from "../../domain/UnknownField.ts"
import { outdated } from "../../domain/Version.ts"
import { makeAgentProblems } from "../../store/agents/AgentProblems.ts"
import { type AgentSettings, AgentStore } from "../../store/agents/Agents.ts"
import { ArtifactRows } from "../../store/knowledge/ArtifactRows.ts"
import { isDeadlock } from "../../store/Deadlock.ts"
import { PublishGate } from "./PublishGate.ts"
import { ToolRevocations } from "./ToolRevocations.ts"
import { Artifacts } from "../knowledge/Artifacts.ts"

/** Defaults of a new agent. `null` in a change restores them. */
const retrievalDefaults = { topK: 6, minScore: null } as const
const groundingDefaults = {
  mode: "strict",
  unsupported: "annotate",
  contextTokens: 6_000,
  maxSearches: 0
} as const
const styleDefaults = { length: "default", tone: "default" } as const
const defaults = {
  instructions: "",
  model: null,
  greeting: null,
  ...retrievalDefaults,
  ...groundingDefaults,
  ...styleDefaults,
  masking: null,
  streamReasoning: false,
  tools: []
} as const

const noSuchBaseVersion = () =>
  invalidField(["from"], "Expected a version of the agent", "The agent has no such version.")
const unavailable = () =>
  new ServiceUnavailable({
    message: "The removal of the agent's files cannot be queued now. Try again later."
  })

/** Settings of a new agent: defaults, overridden by the given ones. */
export const defaultSettings = ({ grounding, retrieval, style, ...given }: CreateAgent): AgentSettings => ({
  ...defaults,
  ...given,
  ...retrieval,
  ...grounding,
  ...style
})

/** Changes in `retrieval`, `grounding` and `style` are merged field by field; null resets the whole object. */
const changesOf = ({
  grounding,
  retrieval,
  style,
  instructions,
  tools,
  note: _,
  publish: __,
  from: ___,
  ...given
}: PatchAgent): Partial<AgentSettings> => ({
  ...given,
  ...(instructions === undefined ? {} : { instructions: instructions ?? defaults.instructions }),
  ...(tools === undefined ? {} : { tools: tools ?? defaults.tools }),
  ...(retrieval === null ? retrievalDefaults : retrieval),
  ...(grounding === null ? groundingDefaults : grounding),
  ...(style === null ? styleDefaults : style)
})

/**
 * Fails with VALIDATION_ERROR for a tool name that no source in this process provides: every turn would leave it out.
 * `path` is the path of the names in the request.
 */
export const checkToolNames = (
  sources: ReadonlyArray<ToolSource>,
  names: ReadonlyArray<string>,
  path: ReadonlyArray<string>
) => {
  const offered = offeredNames(sources)
  const issues = names.flatMap((name, index) => {
    if (offered.has(name)) return []
    const message = `This process offers no tool of this name${hint(name, offered)}`
    return [{ path: [...path, index], message }]
  })
  return issues.length === 0
    ? Effect.void
    : Effect.fail(
        new ValidationError({ message: "The agent names tools that do not exist.", details: { issues } })
      )
}

export class Agents extends Effect.Service<Agents>()("usecases/agents/Agents", {
  dependencies: [PublishGate.Default],
  effect: Effect.gen(function* () {
    const gate = yield* PublishGate
    const store = yield* AgentStore
    const keyStore = yield* KeyStore
    const sql = yield* SqlClient.SqlClient
    const files = yield* ArtifactRows
    const artifacts = yield* Artifacts
    const revocations = yield* ToolRevocations

    const agentProblems = yield* makeAgentProblems
    const sources = yield* ToolSources
    const checkTools = (names: ReadonlyArray<string>) => checkToolNames(sources, names, ["tools"])

    /** `author` is null for an agent that the service creates itself. */
    const create = Effect.fn("Agents.create")(function* (
      scope: TenantScope,
      agent: CreateAgent,
      author: Actor | null = null
    ) {
      yield* checkTools(agent.tools ?? [])
      return yield* store.insert(scope, { id: yield* newId.agent, ...defaultSettings(agent) }, author)
    })

    /** Channels, models and tools of the tenant's agents that fail now, longest first. */
    const problems = agentProblems.list

    const get = Effect.fn("Agents.get")(function* (scope: TenantScope, id: AgentId) {
      return yield* store.find(scope, id).pipe(orNoSuch("agent"))
    })

    const baseOf = Effect.fn("Agents.baseOf")(function* (
      scope: TenantScope,
      id: AgentId,
      version: number | undefined
    ) {
      if (version === undefined) return null
      const found = yield* store.settingsOf(scope, id, version)
      return Option.isNone(found) ? yield* noSuchBaseVersion() : { version, settings: found.value }
    })

    /**
     * Makes a version and publishes it, unless `publish` is false. CONFLICT when `expected` is no longer the newest
     * version, when `from` is no longer published, or, unless `force`, when the settings fail the agent's thresholds. A
     * change without settings makes no version.
     */
    const patch = Effect.fn("Agents.patch")(
      function* (
        scope: TenantScope,
        id: AgentId,
        change: PatchAgent,
        expected: number | null = null,
        author: Actor | null = null,
        force = false
      ) {
        yield* checkTools(change.tools ?? [])
        const before = yield* store.lock(scope, id).pipe(orNoSuch("agent"))
        const changes = changesOf(change)
        const isEmpty = Object.keys(changes).length === 0
        if (isEmpty && (expected === null || expected === before.version)) return before
        if (isEmpty) return yield* outdated(before.version)
        const from = yield* baseOf(scope, id, change.from)
        const { note = null, publish = true } = change
        const changed = yield* store.update(scope, id, { changes, from, publish, note, author }, expected)
        if (Option.isNone(changed)) return yield* outdated(before.version)
        // Checked after the update, so that exactly the published settings are checked.
        if (publish && !force)
          yield* gate.checkVersion(scope, id, changed.value.version, before.publishedVersion)
        return changed.value
      },
      sql.withTransaction,
      Effect.catchTag("SqlError", Effect.die)
    )

    const removeAll = Effect.fn("Agents.removeAll")(
      function* (scope: TenantScope, id: AgentId) {
        if (!(yield* store.seize(scope, id))) return yield* noSuch("agent")
        yield* artifacts.releaseAll(yield* files.ofAgent({ tenantId: scope.tenantId, agentId: id }))
        const revoke = yield* revocations.ofAgent({ tenantId: scope.tenantId, agentId: id })
        yield* store.remove(scope, id)
        return revoke
      },
      sql.withTransaction,
      Effect.retry({ times: 5, while: (error) => isDeadlock(error) }),
      Effect.catchTags({ SqlError: Effect.die, JobQueueError: unavailable })
    )

    /**
     * Removes the agent with everything that belongs to it; its keys stop working at once. The removal of the files of
     * its sources and conversations is queued in the same transaction. SERVICE_UNAVAILABLE when that is not possible;
     * nothing is changed then. The tokens of its tools are revoked after the commit, if the authorization server
     * answers.
     */
    const remove = (scope: TenantScope, id: AgentId) =>
      Effect.uninterruptibleMask((restore) =>
        // Also when the request is interrupted: a removed agent's key must not stay cached.
        Effect.ensuring(restore(removeAll(scope, id)), keyStore.invalidate({ agentId: id })).pipe(
          Effect.flatMap((revoke) => afterCommit(Effect.flatMap(revoke, restore)))
        )
      ).pipe(Effect.withSpan("Agents.remove", { attributes: { agentId: id } }))

    return { create, problems, list: store.list, get, patch, remove } as const
  })
}) {}
