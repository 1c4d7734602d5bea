/** Agents as a configuration file: export, comparison with the stored agents, and application in one transaction. */
import { createHash } from "node:crypto"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Arr from "effect/Array"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { KeyStore } from "../../capabilities/KeyStore.ts"
import { withCommit } from "../../concurrency/AfterCommit.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { Actor } from "../../domain/accounts/Audit.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { AgentId } from "../../domain/Ids.ts"
import type { Agent } from "../../domain/agents/Agent.ts"
import type {
  AgentChange,
  AgentConfiguration,
  ApplyRequest,
  Configuration,
  Plan
} from "../../domain/agents/Configuration.ts"
import { Conflict, ServiceUnavailable, ValidationError } from "../../domain/Errors.ts"
import type { AuditContext } from "../accounts/AuditTrail.ts"
import { Agents, defaultSettings } from "./Agents.ts"
import { PublishGate } from "./PublishGate.ts"
import { ConfiguredParts } from "./ConfiguredParts.ts"
import { toFileForm } from "./ConfiguredSettings.ts"
import {
  type AgentStep,
  freedBy,
  prefixErrors,
  prefixValidationError,
  type PartError,
  type PartStep,
  type PreparedStep,
  type FieldPath,
  removalStepOf,
  shownAgent,
  stepOf
} from "./ConfigurationSteps.ts"

/** Agents read per page. */
const pageSize = 100
/** Maximum number of concurrent requests to the channel providers of one file. */
const maxConcurrentRequests = 8
/** Time-out for all provider requests of one file together. */
const providerTimeout = Duration.seconds(60)
/** Maximum number of channels that a time-out error lists. */
const maxListedIssues = 20

/** The path of an agent in the request. */
const pathOf = (agent: string): FieldPath => ["config", "agents", agent]

const duplicateAgent = (name: string) =>
  new Conflict({
    message: `Two agents are called ${name}. Rename one of them, because names identify them.`
  })
const outdatedPlan = () =>
  new Conflict({ message: "The agents have been changed since the plan was made. Plan again." })

/** Whether the step frees the account of a channel. */
const isFreeing = ({ frees }: PartStep) => frees !== undefined

const hasParts = ({ agents }: Configuration) =>
  Object.values(agents).some(({ cases, channels, remoteTools, sources, widget }) =>
    [sources, remoteTools, cases, widget, channels].some((part) => part !== undefined)
  )

const revisionOf = (agents: ReadonlyArray<Agent>, parts: string) => {
  const versions = agents.map(({ id, publishedVersion, version }) => `${id} ${version} ${publishedVersion}`)
  return createHash("sha256")
    .update([...versions, parts].join("\n"))
    .digest("base64url")
}

/** The tenant's agents by name. CONFLICT when two agents have the same name. */
const agentsByName = (agents: ReadonlyArray<Agent>) => {
  const byName = new Map<string, Agent>()
  for (const agent of agents) {
    if (byName.has(agent.name)) return Effect.fail(duplicateAgent(agent.name))
    byName.set(agent.name, agent)
  }
  return Effect.succeed<ReadonlyMap<string, Agent>>(byName)
}

/** The request for the agents that a file names, and for those that it does not. */
type DesiredAgents = Pick<ApplyRequest, "config" | "prune" | "destroy">

type PartsOf = (
  agent: Agent | undefined,
  configured: AgentConfiguration
) => Effect.Effect<ReadonlyArray<PartStep>, ValidationError>

const stepsOf = Effect.fn(function* (
  agents: ReadonlyArray<Agent>,
  { config, destroy, prune }: DesiredAgents,
  partsOf: PartsOf
) {
  const byName = yield* agentsByName(agents)
  if (destroy === true) {
    return Object.keys(config.agents).flatMap((name) => {
      const found = byName.get(name)
      return found === undefined ? [] : [removalStepOf(found)]
    })
  }
  const usedIds = new Set<string>()
  const steps: Array<AgentStep> = []
  for (const [name, configured] of Object.entries(config.agents)) {
    const before = configured.renamedFrom
    // After the agent was renamed, `renamedFrom` has no effect.
    const found = byName.get(name) ?? (before === undefined ? undefined : byName.get(before))
    if (
      found !== undefined &&
      (usedIds.has(found.id) || (found.name !== name && Object.hasOwn(config.agents, found.name)))
    ) {
      return yield* new ValidationError({
        message: "The file gives one agent two names.",
        details: {
          issues: [{ path: [...pathOf(name), "renamedFrom"], message: "Another entry is in its place" }]
        }
      })
    }
    if (found !== undefined) usedIds.add(found.id)
    const parts = yield* Effect.mapError(partsOf(found, configured), prefixValidationError(pathOf(name)))
    steps.push(...stepOf(name, configured, found, parts))
  }
  const unnamed = prune === true ? agents.filter(({ id }) => !usedIds.has(id)) : []
  return [...steps, ...unnamed.map(removalStepOf)]
})

export class Configurations extends Effect.Service<Configurations>()("usecases/agents/Configurations", {
  dependencies: [PublishGate.Default],
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const agents = yield* Agents
    const keyStore = yield* KeyStore
    const parts = yield* ConfiguredParts
    const gate = yield* PublishGate

    const loadAgents = Effect.fn("Configurations.loadAgents")(function* (scope: TenantScope) {
      const found: Array<Agent> = []
      let after: string | undefined
      do {
        const page: { rows: ReadonlyArray<Agent>; next: string | null } = yield* agents.list(scope, {
          limit: pageSize,
          after
        })
        found.push(...page.rows)
        after = page.next ?? undefined
      } while (after !== undefined)
      return found
    })

    const revision = (scope: TenantScope, found: ReadonlyArray<Agent>) =>
      Effect.map(parts.fingerprint(scope), (fingerprint) => revisionOf(found, fingerprint))

    /**
     * The configuration file of the stored agents; only their settings when `agentsOnly`. CONFLICT when two agents have
     * the same name, or when there is more than a file may hold.
     */
    const read = Effect.fn("Configurations.read")(function* (scope: TenantScope, agentsOnly = false) {
      const found = yield* loadAgents(scope)
      const byName = yield* agentsByName(found)
      const partsOf = agentsOnly ? () => parts.none : yield* parts.load(scope)
      const entries = Array.from(
        byName,
        ([name, agent]) => [name, { ...toFileForm(agent), ...parts.toFileForm(partsOf(agent.id)) }] as const
      )
      const config: Configuration = {
        agents: Object.fromEntries(entries.toSorted(([one], [other]) => (one < other ? -1 : 1)))
      }
      return { config, revision: yield* revision(scope, found) }
    })

    const steps = Effect.fn("Configurations.steps")(function* (
      scope: TenantScope,
      found: ReadonlyArray<Agent>,
      wanted: DesiredAgents
    ) {
      const partsOf = hasParts(wanted.config) ? yield* parts.load(scope) : () => parts.none
      const made = yield* stepsOf(found, wanted, (agent, configured) =>
        parts.steps(agent === undefined ? parts.none : partsOf(agent.id), configured)
      )
      return made.map((step): AgentStep =>
        step.action === "delete" && step.id !== null
          ? { ...step, channels: partsOf(step.id).channels.map(({ id }) => id) }
          : step
      )
    })

    /** The changes that {@link apply} would make. */
    const plan = Effect.fn("Configurations.plan")(function* (scope: TenantScope, wanted: DesiredAgents) {
      const found = yield* loadAgents(scope)
      const made: Plan = {
        changes: (yield* steps(scope, found, wanted)).map(shownAgent),
        revision: yield* revision(scope, found)
      }
      return made
    })

    const applyAgent = (
      scope: TenantScope,
      { action, agent: name, id, partsOnly, published, configured, version }: AgentStep,
      author: Actor | null
    ): Effect.Effect<AgentId | null, PartError> => {
      if (id === null) {
        return Effect.map(agents.create(scope, { name, ...configured }, author), (made) => made.id)
      }
      if (action === "delete") return Effect.succeed(null)
      if (partsOnly) return Effect.succeed(id)
      const { contextTokens, maxSearches, minScore, mode, topK, unsupported, ...settings } = defaultSettings({
        name,
        ...configured
      })
      const retrieval = { topK, minScore }
      const grounding = { mode, unsupported, contextTokens, maxSearches }
      // A publication since the plan was made is a conflict, also of a version that existed before.
      const from = published === null ? {} : { from: published }
      const change = { ...settings, ...from, retrieval, grounding }
      // The publish gate is checked later, after the test cases have been applied.
      return Effect.as(agents.patch(scope, id, change, version, author, true), id)
    }

    /** Sends the provider requests of `steps`, before the transaction that applies them. */
    const prepare = Effect.fn("Configurations.prepare")(function* (
      by: AuditContext,
      steps: ReadonlyArray<AgentStep>
    ) {
      const freed = new Set(steps.flatMap(({ channels, parts }) => [...channels, ...parts.flatMap(freedBy)]))
      const permits = yield* Effect.makeSemaphore(maxConcurrentRequests)
      const unanswered = new Set<FieldPath>()
      const preparePart = (agent: string, part: PartStep) => {
        const path = [...pathOf(agent), ...part.path]
        return Effect.suspend(() => {
          unanswered.add(path)
          return part.prepare(by, freed)
        }).pipe(
          prefixErrors(path),
          Effect.tap(() => unanswered.delete(path)),
          permits.withPermits(1)
        )
      }
      const message = `Providers of channels did not answer within ${Duration.toSeconds(providerTimeout)} seconds.`
      return yield* Effect.forEach(
        steps,
        (step) =>
          Effect.map(
            Effect.forEach(step.parts, (part) => preparePart(step.agent, part), { concurrency: "unbounded" }),
            (applyParts) => ({ step, applyParts })
          ),
        { concurrency: "unbounded" }
      ).pipe(
        Effect.timeoutFail({
          duration: providerTimeout,
          onTimeout: () => {
            const issues = Array.from(unanswered, (path) => ({
              path,
              message: "The provider did not answer"
            }))
            return new ServiceUnavailable({
              message: `${message} Nothing was changed.`,
              details: { issues: issues.slice(0, maxListedIssues) }
            })
          }
        }),
        // Nothing has been changed yet, so the request may be interrupted.
        Effect.interruptible
      )
    })

    /** Applies the parts for which `isWanted`. */
    const applyPartsOf = (
      agent: AgentScope,
      { applyParts, step }: PreparedStep,
      isWanted: (part: PartStep) => boolean
    ) =>
      Effect.forEach(
        Arr.zip(step.parts, applyParts).filter(([part]) => isWanted(part)),
        ([part, applyPart]) => prefixErrors(part.path)(applyPart(agent)),
        { discard: true }
      )

    /** Removes what is deleted, and frees the accounts of channels, which another agent of the file may get. */
    const free = (scope: TenantScope, prepared: PreparedStep): Effect.Effect<void, PartError> => {
      const { action, id } = prepared.step
      if (id === null) return Effect.void
      return action === "delete"
        ? agents.remove(scope, id)
        : applyPartsOf({ ...scope, agentId: id }, prepared, isFreeing)
    }

    const applyStep = Effect.fn(function* (
      scope: TenantScope,
      prepared: PreparedStep,
      author: Actor | null,
      force: boolean
    ) {
      const { step } = prepared
      const agentId = yield* applyAgent(scope, step, author)
      if (agentId !== null) yield* applyPartsOf({ ...scope, agentId }, prepared, (part) => !isFreeing(part))
      if (step.action === "update" && !step.partsOnly && agentId !== null && !force) {
        const before = yield* agents.get(scope, agentId)
        yield* gate.checkVersion(scope, agentId, before.publishedVersion, step.published)
      }
      const applied: AgentChange = { ...shownAgent(step), id: agentId ?? step.id }
      return applied
    })

    /**
     * Applies the file completely; on any failure nothing is changed. CONFLICT while another file is being applied, and
     * when the agents are no longer those of `revision`. `by` is the author of the new versions. Providers are called
     * for new channels before the transaction begins; the transaction is refused when anything has changed meanwhile.
     */
    const apply = Effect.fn("Configurations.apply")(function* (
      by: AuditContext,
      { force = false, revision: expected, ...wanted }: ApplyRequest
    ) {
      const scope = { tenantId: by.tenantId }
      const before = yield* loadAgents(scope)
      const planned = yield* revision(scope, before)
      if (expected !== undefined && expected !== planned) return yield* outdatedPlan()
      const prepared = yield* prepare(by, yield* steps(scope, before, wanted)).pipe(
        Effect.catchTag("NOT_FOUND", outdatedPlan)
      )
      return yield* Effect.gen(function* () {
        const [lock] = yield* sql<{ readonly free: boolean }>`
          select pg_try_advisory_xact_lock(hashtextextended(${`apply ${scope.tenantId}`}, 0)) as free`
        if (lock?.free !== true) return yield* new Conflict({ message: "Another file is being applied." })
        if (planned !== (yield* revision(scope, yield* loadAgents(scope)))) return yield* outdatedPlan()
        const inOrder = <A>(apply: (each: PreparedStep) => Effect.Effect<A, PartError>) =>
          Effect.forEach(prepared, (each) => prefixErrors(pathOf(each.step.agent))(apply(each)))
        yield* inOrder((each) => free(scope, each))
        const changes = yield* inOrder((each) => applyStep(scope, each, by.actor, force))
        const applied: Plan = { changes, revision: yield* revision(scope, yield* loadAgents(scope)) }
        return applied
      }).pipe(
        sql.withTransaction,
        Effect.catchTags({ SqlError: Effect.die, NOT_FOUND: () => outdatedPlan() }),
        // Includes keys of removed agents, so that none stays cached.
        Effect.ensuring(keyStore.invalidate(scope)),
        withCommit
      )
    })

    return { read, plan, apply } as const
  })
}) {}
