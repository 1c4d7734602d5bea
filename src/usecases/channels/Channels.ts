/** The accounts at messaging providers that an agent answers for, as configured in the dashboard. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import {
  type ChannelAccess,
  type ChannelAdapter,
  ChannelAdapters,
  type ProvenAccount
} from "../../capabilities/ChannelAdapters.ts"
import { AuditLog } from "../../capabilities/AuditLog.ts"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type {
  ChannelConfiguration,
  CreateChannel,
  PatchChannel
} from "../../domain/channels/ChannelConfiguration.ts"
import { ServiceUnavailable, invalidField, noSuch, orNoSuch } from "../../domain/Errors.ts"
import { type AgentId, type ChannelId, newId } from "../../domain/Ids.ts"
import { outdated } from "../../domain/Version.ts"
import type { PageRequest } from "../../store/accounts/Tenants.ts"
import { AgentStore } from "../../store/agents/Agents.ts"
import { makeChannelHealth } from "../../store/channels/ChannelHealth.ts"
import { type ChannelChanges, ChannelStore, type StoredChannel } from "../../store/channels/Channels.ts"
import type { AuditContext } from "../accounts/AuditTrail.ts"
import { accessOf, sealAccess } from "./ChannelAccess.ts"
import { ChannelProof, accountTaken, webhookUrlOf } from "./ChannelProof.ts"
import { ChannelSettings } from "./ChannelSettings.ts"

const invalid = (path: ReadonlyArray<string>, message: string) => invalidField(path, message)
const providerFixed = () =>
  invalidField(
    ["channel"],
    "Create another channel for another provider",
    "The provider of a channel cannot be changed."
  )
const notAudited = () =>
  new ServiceUnavailable({ message: "The claim of the account could not be recorded. Nothing was changed." })

/** The settings in a profile that a person has entered. */
export const settingsOf = (adapter: ChannelAdapter | null, profile: ChannelAccess["profile"]) =>
  Object.fromEntries(
    (adapter?.form.settings ?? []).flatMap(({ name }) => {
      const value = profile[name]
      return value === undefined || value === "" ? [] : [[name, value] as const]
    })
  )

/** Fails for settings that the channel does not have, missing ones, and invalid values. */
const checkSettings = ({ form: { settings = [] } }: ChannelAdapter, given: ChannelAccess["profile"]) =>
  Effect.gen(function* () {
    const unknown = Object.keys(given).find((name) => !settings.some((one) => one.name === name))
    if (unknown !== undefined) return yield* invalid(["settings", unknown], "The channel has no such setting")
    for (const { choices, label, name, optional = false } of settings) {
      const value = given[name] ?? ""
      if (value === "" && !optional) return yield* invalid(["settings", name], `${label} is missing`)
      if (value !== "" && choices !== undefined && !choices.includes(value))
        return yield* invalid(["settings", name], `Expected one of ${choices.join(", ")}`)
    }
  })

/** Fails for secrets that the channel does not have, and for missing ones. */
const checkSecrets = ({ form }: ChannelAdapter, secrets: ChannelAccess["secrets"]) =>
  Effect.gen(function* () {
    const names = form.secrets.map(({ name }) => name)
    const unknown = Object.keys(secrets).find((name) => !names.includes(name))
    if (unknown !== undefined) return yield* invalid(["secrets", unknown], "The channel has no such secret")
    const missing = form.secrets.find(({ name }) => secrets[name] === undefined)
    if (missing !== undefined) return yield* invalid(["secrets", missing.name], `${missing.label} is missing`)
  })

export class Channels extends Effect.Service<Channels>()("usecases/channels/Channels", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const store = yield* ChannelStore
    const agents = yield* AgentStore
    const box = yield* SecretBox
    const adapters = yield* ChannelAdapters
    const proof = yield* ChannelProof
    const audit = yield* AuditLog
    const health = yield* makeChannelHealth
    const { appUrl } = yield* ChannelSettings

    const toConfiguration = ({
      tenantId: _,
      accessToken: _a,
      secrets: _s,
      profile,
      ...row
    }: StoredChannel) => {
      const adapter = adapters.named(row.channel)
      const webhookUrl = webhookUrlOf(appUrl, adapter, row)
      const configuration: ChannelConfiguration = {
        ...row,
        webhookUrl,
        settings: settingsOf(adapter, profile)
      }
      return configuration
    }

    const adapterOf = (channel: string) => {
      const adapter = adapters.named(channel)
      return adapter === null
        ? invalid(["channel"], `Expected one of ${adapters.all.map(({ name }) => name).join(", ")}`)
        : Effect.succeed(adapter)
    }

    /** The agent's channels, oldest first. */
    const list = Effect.fn("Channels.list")(function* (
      scope: TenantScope,
      agentId: AgentId,
      request: PageRequest
    ) {
      const { next, rows } = yield* store.page(
        yield* agents.findScope(scope, agentId).pipe(orNoSuch("agent")),
        request
      )
      return { rows: rows.map(toConfiguration), next }
    })

    /**
     * Proves an account, checks that no other configuration keeps it, and registers this service's address. Required
     * before an account becomes active or its credentials change.
     */
    const proveAccount = Effect.fn("Channels.proveAccount")(function* (
      adapter: ChannelAdapter,
      scope: TenantScope,
      access: ChannelAccess,
      ownIds: ReadonlySet<ChannelId>
    ) {
      const account = yield* proof.prove(adapter, access)
      const replaced = yield* proof.findReplaced(adapter, scope, account.externalId, ownIds)
      yield* proof.connect(adapter, access, account)
      return { account, replaced }
    })

    /** The account to store. For an inactive one the provider is only called if it determines the account. */
    const accountFor = Effect.fn("Channels.accountFor")(function* (
      adapter: ChannelAdapter,
      scope: TenantScope,
      access: ChannelAccess,
      ownIds: ReadonlySet<ChannelId>,
      active: boolean
    ) {
      if (active) return yield* proveAccount(adapter, scope, access, ownIds)
      const account = adapter.form.account === null ? yield* proof.prove(adapter, access) : access
      return { account, replaced: Option.none<StoredChannel>() }
    })

    /**
     * Runs the change in one transaction with the end of another tenant's configuration, if any, and the audit entries.
     */
    const claimAccount = (
      { actor, requestId, tenantId }: AuditContext,
      id: ChannelId,
      replaced: Option.Option<StoredChannel>,
      change: Effect.Effect<Option.Option<StoredChannel>>
    ) =>
      Effect.gen(function* () {
        if (Option.isNone(replaced)) return yield* change
        if (!(yield* store.deactivate(replaced.value))) return yield* accountTaken()
        const changed = yield* change
        if (Option.isNone(changed)) return yield* accountTaken()
        yield* audit.record({ tenantId, actor, requestId, action: "channel.claim", target: id }).pipe(
          Effect.zipRight(
            audit.record({
              tenantId: replaced.value.tenantId,
              actor: { type: "service", id: "channels" },
              requestId,
              action: "channel.lose",
              target: replaced.value.id
            })
          ),
          Effect.mapError(notAudited)
        )
        return changed
      }).pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die))

    /**
     * Checks and proves a new configuration, and returns the effect that stores it. The provider is called here,
     * outside the transaction. `by` is who claims an account from another tenant. Channels of `freed` give up their
     * accounts before the effect is run.
     */
    const prepareCreate = Effect.fn("Channels.prepareCreate")(function* (
      by: AuditContext,
      { accessToken, active, channel, externalId, secrets, settings, sourceScope }: CreateChannel,
      freed: ReadonlySet<ChannelId> = new Set()
    ) {
      const adapter = yield* adapterOf(channel)
      yield* checkSecrets(adapter, secrets)
      yield* checkSettings(adapter, settings)
      const isReported = adapter.form.account === null
      if (!isReported && externalId === undefined)
        return yield* invalid(["externalId"], "The account's id is missing")
      const access: ChannelAccess = {
        externalId: externalId ?? "",
        accessToken,
        secrets,
        profile: settingsOf(adapter, settings)
      }
      const { account, replaced } = yield* accountFor(adapter, by, access, freed, active)
      const insert = (agent: AgentScope) =>
        Effect.gen(function* () {
          const id = yield* newId.channel
          const row = {
            id,
            channel,
            active,
            sourceScope,
            ...(yield* sealAccess(box, credentialsOf(adapter, access, account)))
          }
          const created = yield* claimAccount(by, id, replaced, store.insert(agent, row))
          if (Option.isNone(created)) {
            yield* agents.findScope(agent, agent.agentId).pipe(orNoSuch("agent"))
            return yield* accountTaken()
          }
          return toConfiguration(created.value)
        })
      return { externalId: account.externalId, insert }
    })

    const create = Effect.fn("Channels.create")(function* (
      by: AuditContext,
      agentId: AgentId,
      given: CreateChannel
    ) {
      const agent = yield* agents.findScope(by, agentId).pipe(orNoSuch("agent"))
      const { insert } = yield* prepareCreate(by, given)
      return yield* insert(agent)
    })

    /** The credentials with the provider's data of the account. */
    const credentialsOf = (
      adapter: ChannelAdapter,
      access: ChannelAccess,
      { externalId, profile }: ProvenAccount
    ): ChannelAccess => ({
      ...access,
      externalId,
      profile: { ...profile, ...settingsOf(adapter, access.profile) }
    })

    /** The credentials and settings after the change. A stored access token is sent only where it was given for. */
    const changedAccess = (
      { form }: ChannelAdapter,
      row: StoredChannel,
      { accessToken, externalId, secrets = {}, settings = {} }: PatchChannel
    ) =>
      Effect.gen(function* () {
        const isElsewhere = (form.settings ?? []).some(
          ({ address = false, name }) =>
            address && (settings[name] || row.profile[name]) !== row.profile[name]
        )
        if (isElsewhere && accessToken === undefined)
          return yield* invalid(["accessToken"], "Another server was named: send the access token again")
        const stored =
          accessToken !== undefined && row.secrets === null
            ? { externalId: row.externalId, accessToken, secrets: {}, profile: row.profile }
            : yield* Effect.mapError(accessOf(box, row), ({ message }) => invalid(["accessToken"], message))
        const access: ChannelAccess = {
          externalId: externalId ?? stored.externalId,
          accessToken: accessToken ?? stored.accessToken,
          secrets: { ...stored.secrets, ...secrets },
          profile: Object.fromEntries(
            Object.entries({ ...stored.profile, ...settings }).filter(([, value]) => value !== "")
          )
        }
        return access
      })

    /** The row to store, and the configuration that it replaces. */
    const planPatch = Effect.fn("Channels.planPatch")(function* (
      by: AuditContext,
      row: StoredChannel,
      patch: PatchChannel,
      freed: ReadonlySet<ChannelId>
    ) {
      const active = patch.active ?? row.active
      const scope = patch.sourceScope === undefined ? {} : { sourceScope: patch.sourceScope }
      const changesAccess =
        patch.accessToken !== undefined ||
        patch.externalId !== undefined ||
        patch.secrets !== undefined ||
        patch.settings !== undefined
      if (!changesAccess && (!active || row.active)) {
        const changes: ChannelChanges = { ...scope, ...(patch.active === undefined ? {} : { active }) }
        return { changes, replaced: Option.none<StoredChannel>(), isProven: false }
      }
      const adapter = yield* adapterOf(row.channel)
      const access = yield* changedAccess(adapter, row, patch)
      yield* checkSecrets(adapter, access.secrets)
      yield* checkSettings(adapter, { ...settingsOf(adapter, access.profile), ...patch.settings })
      const { account, replaced } = yield* accountFor(
        adapter,
        by,
        access,
        new Set([row.id, ...freed]),
        active
      )
      const stored = yield* sealAccess(box, credentialsOf(adapter, access, account))
      const changes: ChannelChanges = { ...stored, ...scope, active }
      return { changes, replaced, isProven: active }
    })

    /**
     * Checks and proves a change, and returns the effect that stores it. CONFLICT also when `expected` is no longer the
     * newest version.
     */
    const preparePatch = Effect.fn("Channels.preparePatch")(function* (
      by: AuditContext,
      id: ChannelId,
      changes: PatchChannel,
      expected: number | null = null,
      freed: ReadonlySet<ChannelId> = new Set()
    ) {
      const found = yield* store.find(by, id).pipe(orNoSuch("channel"))
      if (changes.channel !== undefined && changes.channel !== found.channel) return yield* providerFixed()
      if (expected !== null && expected !== found.version) return yield* outdated(found.version)
      const plan = yield* planPatch(by, found, changes, freed)
      return Effect.gen(function* () {
        const updated = yield* claimAccount(
          by,
          id,
          plan.replaced,
          store.update(by, id, plan.changes, expected)
        )
        if (Option.isNone(updated)) {
          const newest = yield* store.find(by, id)
          const isOld = expected !== null && Option.isSome(newest) && newest.value.version !== expected
          return yield* isOld ? outdated(newest.value.version) : accountTaken()
        }
        // The provider has just answered with these credentials.
        if (plan.isProven) yield* health.recordSuccess(by, id)
        return toConfiguration(updated.value)
      })
    })

    const patch = (by: AuditContext, id: ChannelId, changes: PatchChannel, expected: number | null = null) =>
      Effect.flatten(preparePatch(by, id, changes, expected)).pipe(Effect.withSpan("Channels.patch"))

    const remove = Effect.fn("Channels.remove")(function* (scope: TenantScope, id: ChannelId) {
      if (!(yield* store.remove(scope, id))) return yield* noSuch("channel")
    })

    return { list, create, patch, prepareCreate, preparePatch, remove } as const
  })
}) {}
