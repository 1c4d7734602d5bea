/** The widgets of agents: configured in the dashboard, shown on pages. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { KeyStore } from "../../capabilities/KeyStore.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { type AgentWidget, defaultLook, type PatchWidget } from "../../domain/agents/Widget.ts"
import { orNoSuch } from "../../domain/Errors.ts"
import type { AgentId } from "../../domain/Ids.ts"
import { openScope } from "../../domain/knowledge/SourceScope.ts"
import { outdated } from "../../domain/Version.ts"
import { AgentStore } from "../../store/agents/Agents.ts"
import { AgentWidgetStore, type StoredWidget } from "../../store/agents/Widgets.ts"
import { Keys } from "../accounts/Keys.ts"
import { SourceScopes } from "../knowledge/SourceScopes.ts"

/** Name of the widget's key in the list of keys. */
const keyName = "Widget"

/** A widget before its first change. Page visitors are anonymous, so sources with access labels are excluded. */
const newWidget: AgentWidget = {
  publicId: null,
  allowedOrigins: [],
  sourceScope: openScope,
  look: defaultLook,
  version: 0
}

export class Widgets extends Effect.Service<Widgets>()("usecases/agents/Widgets", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const agents = yield* AgentStore
    const keys = yield* Keys
    const keyStore = yield* KeyStore
    const scopes = yield* SourceScopes
    const store = yield* AgentWidgetStore

    const widgetOf = ({ allowedOrigins, live, look, publicId, sourceScope, version }: StoredWidget) => {
      const widget: AgentWidget = {
        publicId: live ? publicId : null,
        allowedOrigins,
        sourceScope,
        look,
        version
      }
      return widget
    }

    const findWidget = (scope: AgentScope) =>
      Effect.map(store.find(scope), Option.match({ onNone: () => newWidget, onSome: widgetOf })).pipe(
        Effect.withSpan("Widgets.findWidget")
      )

    /** The tenant's widgets that were ever changed, by agent. */
    const ofTenant = (scope: TenantScope) =>
      Effect.map(
        store.ofTenant(scope),
        (rows): ReadonlyMap<AgentId, AgentWidget> => new Map(rows.map((row) => [row.agentId, widgetOf(row)]))
      )

    const get = (scope: TenantScope, agentId: AgentId) =>
      Effect.flatMap(scopes.ofAgent(scope, agentId), findWidget).pipe(Effect.withSpan("Widgets.get"))

    const change = Effect.fn("Widgets.change")(
      function* (
        scope: AgentScope,
        { allowedOrigins: origins, sourceScope: readable, ...given }: PatchWidget,
        expected: number | null
      ) {
        yield* store.lock(scope)
        const before = yield* store.find(scope)
        const stored = Option.getOrElse(before, () => newWidget)
        if (expected !== null && expected !== stored.version) return yield* outdated(stored.version)
        const look = { ...stored.look, ...given }
        if (Option.isSome(before) && before.value.live) {
          const { keyId, publicId } = before.value
          const changes = {
            ...(origins === undefined ? {} : { allowedOrigins: origins }),
            ...(readable === undefined ? {} : { sourceScope: readable })
          }
          if (Object.keys(changes).length > 0) yield* keys.patch(scope, keyId, changes)
          yield* store.put(scope, { publicId, keyId, look })
          return { widget: yield* findWidget(scope), keyId }
        }
        // The first key, or one after a revoked key: a public id is not used again.
        const widgetKey = {
          name: keyName,
          allowedOrigins: origins ?? stored.allowedOrigins,
          sourceScope: readable === undefined ? stored.sourceScope : readable
        }
        const { key, publicId } = yield* keys.createForWidget(scope, widgetKey)
        yield* store.put(scope, { publicId, keyId: key.id, look })
        return { widget: yield* findWidget(scope), keyId: key.id }
      },
      sql.withTransaction,
      Effect.catchTag("SqlError", Effect.die)
    )

    /** CONFLICT when `expected` is no longer the newest version. */
    const patch = Effect.fn("Widgets.patch")(function* (
      tenant: TenantScope,
      agentId: AgentId,
      given: PatchWidget,
      expected: number | null = null
    ) {
      const scope = yield* scopes.ofAgent(tenant, agentId)
      // During the transaction, other requests may have cached the old key.
      const { widget } = yield* Effect.tap(change(scope, given, expected), ({ keyId }) =>
        keyStore.invalidate({ keyId })
      )
      return widget
    })

    /** Data that a page shows before the widget is opened. */
    const publicView = Effect.fn("Widgets.publicView")(function* (scope: AgentScope) {
      const agent = yield* agents.find(scope, scope.agentId).pipe(orNoSuch("agent"))
      const { look } = yield* findWidget(scope)
      return { name: agent.name, ...look, greeting: look.greeting ?? agent.greeting }
    })

    return { get, ofTenant, patch, publicView } as const
  })
}) {}
