/** The versions of an agent: its settings after each change, and which version turns use. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { Split } from "../../domain/agents/Agent.ts"
import { changesBetween, noSuchVersion } from "../../domain/agents/AgentVersion.ts"
import { orNoSuch } from "../../domain/Errors.ts"
import type { AgentId } from "../../domain/Ids.ts"
import { shownSettings } from "../../store/agents/AgentSettings.ts"
import { AgentStore } from "../../store/agents/Agents.ts"
import { AgentVersionStore } from "../../store/agents/AgentVersions.ts"
import { PublishGate } from "./PublishGate.ts"

export class AgentVersions extends Effect.Service<AgentVersions>()("usecases/agents/AgentVersions", {
  dependencies: [PublishGate.Default],
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const gate = yield* PublishGate
    const store = yield* AgentVersionStore
    const agents = yield* AgentStore

    /** Versions below `before`, newest first. */
    const list = Effect.fn("AgentVersions.list")(function* (
      scope: TenantScope,
      id: AgentId,
      page: { readonly limit: number; readonly before: number | null }
    ) {
      yield* agents.find(scope, id).pipe(orNoSuch("agent"))
      return yield* store.list(scope, id, page)
    })

    /** A version with its settings and its changes from the previous version; no changes for the first one. */
    const get = Effect.fn("AgentVersions.get")(function* (scope: TenantScope, id: AgentId, version: number) {
      const [found, previous] = yield* store.withPrevious(scope, id, version)
      if (found === undefined) return yield* noSuchVersion()
      const settings = shownSettings(found.settings)
      const changes = previous === undefined ? [] : changesBetween(shownSettings(previous.settings), settings)
      return { version: { ...found, settings }, changes }
    })

    const orNoSuchVersion = <A>(found: Option.Option<A>) =>
      Option.match(found, { onNone: noSuchVersion, onSome: Effect.succeed<A> })

    /**
     * Runs `change` if the version passes the gate. The agent is locked, so that nothing else is published meanwhile.
     */
    const ifGatePasses = <A, E>(
      scope: TenantScope,
      id: AgentId,
      version: number,
      change: Effect.Effect<A, E>
    ) =>
      agents
        .lock(scope, id)
        .pipe(
          Effect.zipRight(gate.checkVersion(scope, id, version)),
          Effect.zipRight(change),
          sql.withTransaction,
          Effect.catchTag("SqlError", Effect.die)
        )

    /**
     * Publishes a version, newer or older than the current one. New turns use it. CONFLICT when it fails the agent's
     * thresholds, unless `force`.
     */
    const publish = Effect.fn("AgentVersions.publish")(function* (
      scope: TenantScope,
      id: AgentId,
      version: number,
      force = false
    ) {
      const change = store.publish(scope, id, version)
      return yield* orNoSuchVersion(yield* force ? change : ifGatePasses(scope, id, version, change))
    })

    /** Sends a share of the conversations to a version that is not published. Checked like {@link publish}. */
    const split = Effect.fn("AgentVersions.split")(function* (
      scope: TenantScope,
      id: AgentId,
      to: Split,
      force = false
    ) {
      const change = store.split(scope, id, to)
      return yield* orNoSuchVersion(yield* force ? change : ifGatePasses(scope, id, to.version, change))
    })

    const endSplit = (scope: TenantScope, id: AgentId) =>
      Effect.flatMap(store.split(scope, id, null), orNoSuchVersion).pipe(
        Effect.withSpan("AgentVersions.endSplit")
      )

    return { list, get, publish, split, endSplit } as const
  })
}) {}
