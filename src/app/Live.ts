/** The composition root: wires everything once. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as QueueTable from "../capabilities/JobQueue/Table.ts"
import {
  addWeeks,
  layerEmbedded,
  layerPostgres,
  isolateTenants,
  migrate,
  refuseReadOnly
} from "../store/Database.ts"
import { InboundEvents } from "../store/channels/InboundEvents.ts"
import { ProcessLeases } from "../store/chat/ProcessLeases.ts"
import { Artifacts } from "../usecases/knowledge/Artifacts.ts"
import { PlanTable } from "../usecases/billing/Billing.ts"
import { ChannelSettings } from "../usecases/channels/ChannelSettings.ts"
import { ConnectorSettings } from "../usecases/knowledge/ConnectorSettings.ts"
import { AlertRecipient, JobAlerts } from "../usecases/operations/JobAlerts.ts"
import { AuditTrail } from "../usecases/accounts/AuditTrail.ts"
import { TenantGate } from "../usecases/operations/moves/TenantGate.ts"
import { TenantMoves } from "../usecases/operations/moves/TenantMoves.ts"
import { Queues } from "../usecases/operations/Queues.ts"
import { RateLimitSettings } from "../usecases/billing/RateLimits.ts"
import { SourceScopes } from "../usecases/knowledge/SourceScopes.ts"
import { ToolRevocations } from "../usecases/agents/ToolRevocations.ts"
import { ToolTokens } from "../usecases/agents/ToolTokens.ts"
import { OtherModelCalls } from "../usecases/billing/OtherModelCalls.ts"
import { InstallationRetention } from "../usecases/accounts/Retention.ts"
import type { Settings } from "./config/Config.ts"
import * as Package from "./Package.ts"
import * as Secrets from "./config/Secrets.ts"
import { TurnSettings } from "../usecases/chat/TurnSettings.ts"
import { capabilities } from "./Capabilities.ts"
import * as Accounts from "./layers/Accounts.ts"
import * as Agents from "./layers/Agents.ts"
import * as Billing from "./layers/Billing.ts"
import * as Channels from "./layers/Channels.ts"
import * as Chat from "./layers/Chat.ts"
import * as Conversations from "./layers/Conversations.ts"
import * as Events from "./layers/Events.ts"
import * as Knowledge from "./layers/Knowledge.ts"

/** The database only, without migrations. */
export const database = (settings: Settings) =>
  settings.database === null
    ? layerEmbedded({
        dataDir: settings.dataDir,
        seed: Package.seed,
        thread: Package.worker("database"),
        tenantRole: settings.tenantRole
      })
    : layerPostgres({ ...settings.database, tenantRole: settings.tenantRole })

/** Migrates the database. An embedded one has only this process, so the leases of earlier processes end here. */
const prepareDatabase = (settings: Settings) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      yield* refuseReadOnly
      yield* migrate(Package.migrations)
      if (settings.tenantRole !== null) yield* isolateTenants(settings.tenantRole)
      // Before the first turn, because the last process may have ended weeks ago. Later a sweep makes them.
      yield* Effect.catchAll(addWeeks, (error) =>
        Effect.logWarning("The next weeks of traces could not be made", error)
      )
      if (settings.database !== null) return
      yield* (yield* ProcessLeases).removeAll
      yield* QueueTable.expireLeases
    })
  ).pipe(Layer.provideMerge(ProcessLeases.Default), Layer.provideMerge(database(settings)))

/**
 * Time for open requests after the listener has closed, and then for running turns to settle. Service managers wait
 * longer than their sum (`deploy`, `compose.yaml`, `nix/module.nix`).
 */
export const drainTimeouts = { requests: Duration.seconds(35), turns: Duration.seconds(30) }

/** The settings that use-cases read. */
const settingsOf = (settings: Settings) =>
  Layer.mergeAll(
    Layer.succeed(AlertRecipient, settings.alertEmail),
    Layer.succeed(ChannelSettings, settings.channels),
    Layer.succeed(InstallationRetention, settings.retention),
    Layer.succeed(PlanTable, settings.billing),
    Layer.succeed(RateLimitSettings, settings),
    Layer.succeed(TurnSettings, {
      timeout: settings.turnTimeout,
      runtimeData: settings.runtimeData,
      realtimeUrl: settings.realtimeUrl,
      drain: drainTimeouts.turns
    })
  )

const stores = Layer.mergeAll(
  Accounts.stores,
  Agents.stores,
  Billing.stores,
  Channels.stores,
  Chat.stores,
  Conversations.stores,
  Events.stores,
  Knowledge.stores
)

/** Services that several use-cases share. */
const shared = Layer.mergeAll(
  Artifacts.Default,
  ConnectorSettings.Default,
  InboundEvents.Default,
  OtherModelCalls.Default,
  SourceScopes.Default,
  Layer.provideMerge(ToolRevocations.Default, ToolTokens.Default)
)

/** Everything below HTTP on one database. `replace` has capabilities of the host; it may use the stores. */
export const layer = <E = never, R = never>(
  settings: Settings,
  replace: Layer.Layer<never, E, R> = Layer.empty
) =>
  Layer.mergeAll(
    Accounts.layer,
    Agents.layer,
    Billing.layer,
    Channels.layer,
    Chat.layer,
    Conversations.layer,
    Events.layer,
    Knowledge.layer,
    JobAlerts.Default,
    Queues.Default,
    TenantGate.Default.pipe(Layer.provideMerge(TenantMoves.Default.pipe(Layer.provide(AuditTrail.Default))))
  ).pipe(
    Layer.provideMerge(shared),
    Layer.provideMerge(Layer.merge(capabilities(settings, replace), settingsOf(settings))),
    Layer.provideMerge(Layer.merge(stores, Secrets.layer(settings))),
    Layer.provideMerge(prepareDatabase(settings))
  )
