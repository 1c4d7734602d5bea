/**
 * The channels in an agent's configuration file: their differences and how these are applied. The provider is asked for
 * the account before the transaction; the transaction stores the confirmed account.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { ChannelAdapters } from "../../capabilities/ChannelAdapters.ts"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { accountOfName, type ConfiguredChannel } from "../../domain/channels/ChannelConfiguration.ts"
import { invalidField } from "../../domain/Errors.ts"
import type { AgentId } from "../../domain/Ids.ts"
import { canonical, changedMembers } from "../../domain/Json.ts"
import { openScope } from "../../domain/knowledge/SourceScope.ts"
import { ChannelStore, type StoredChannel } from "../../store/channels/Channels.ts"
import { accessOf } from "../channels/ChannelAccess.ts"
import { Channels, settingsOf } from "../channels/Channels.ts"
import { type PartStep, partStep, type FieldPath } from "./ConfigurationSteps.ts"

/** The channel connections of one agent, oldest first. */
export type ChannelParts = ReadonlyArray<StoredChannel>

type ChannelsByName = Readonly<Record<string, ConfiguredChannel>>

/** Values of a channel that a file omits. */
const defaults = { settings: {}, sourceScope: openScope, active: true } satisfies ConfiguredChannel

/** `path` of a field within the channel, or of the channel within its agent. */
const invalid = (name: string, message: string, path: FieldPath) =>
  invalidField(path, message, `The channel ${name} cannot be set up.`)

const pathOf = (name: string): FieldPath => ["channels", name]

const isSameSecret = (one: Redacted.Redacted, other: Redacted.Redacted | undefined) =>
  other !== undefined && Redacted.value(one) === Redacted.value(other)

export class ConfiguredChannels extends Effect.Service<ConfiguredChannels>()(
  "usecases/agents/ConfiguredChannels",
  {
    effect: Effect.gen(function* () {
      const store = yield* ChannelStore
      const channels = yield* Channels
      const adapters = yield* ChannelAdapters
      const box = yield* SecretBox

      const load = (scope: TenantScope) =>
        Effect.map(store.ofTenant(scope), (rows) => {
          const byAgent = new Map<AgentId, Array<StoredChannel>>()
          for (const row of rows) byAgent.set(row.agentId, [...(byAgent.get(row.agentId) ?? []), row])
          return (agentId: AgentId): ChannelParts => byAgent.get(agentId) ?? []
        })

      /** The channel's name alone, when its provider determines the account and there is only one connection. */
      const nameOf = ({ channel, externalId }: StoredChannel, all: ChannelParts) =>
        adapters.named(channel)?.form.account === null &&
        all.filter((one) => one.channel === channel).length === 1
          ? channel
          : `${channel}:${externalId}`

      const valuesOf = ({ active, channel, profile, sourceScope }: StoredChannel) => ({
        settings: settingsOf(adapters.named(channel), profile),
        sourceScope,
        active
      })

      /** The channel in file form, without secrets and defaults. */
      const configuredChannelOf = (row: StoredChannel) =>
        changedMembers<ConfiguredChannel>(valuesOf(row), defaults)

      /** The channels in file form, without secrets. */
      const toFileForm = (all: ChannelParts): ChannelsByName =>
        Object.fromEntries(
          all
            .map((row) => [nameOf(row, all), configuredChannelOf(row)] as const)
            .toSorted(([one], [other]) => (one < other ? -1 : 1))
        )

      /** The stored connection with this name; undefined when it is new. */
      const findConnection = (name: string, all: ChannelParts) => {
        const account = accountOfName(name)
        const named = all.filter(
          ({ channel, externalId }) =>
            channel === account.channel &&
            (account.externalId === undefined || externalId === account.externalId)
        )
        return named.length > 1
          ? invalid(
              name,
              "There are several: name the account, as in telegram:123456, or delete the others",
              pathOf(name)
            )
          : Effect.succeed(named[0])
      }

      const hasOtherSecrets = (row: StoredChannel, { accessToken, secrets = {} }: ConfiguredChannel) =>
        Effect.match(accessOf(box, row), {
          onFailure: () => accessToken !== undefined,
          onSuccess: (stored) =>
            (accessToken !== undefined && !isSameSecret(accessToken, stored.accessToken)) ||
            Object.entries(secrets).some(([name, secret]) => !isSameSecret(secret, stored.secrets[name]))
        })

      const createStep = (name: string, configured: ConfiguredChannel): PartStep => {
        const { channel, externalId } = accountOfName(name)
        const { accessToken, secrets = {}, ...values } = { ...defaults, ...configured }
        return {
          path: pathOf(name),
          change: { field: `channels.${name}`, before: null, after: values },
          prepare: Effect.fn(function* (by, freed) {
            if (accessToken === undefined)
              return yield* invalid(name, "A new account needs its access token", ["accessToken"])
            const account = externalId === undefined ? {} : { externalId }
            const given = { channel, ...account, accessToken, secrets, ...values }
            const prepared = yield* channels.prepareCreate(by, given, freed)
            if (externalId !== undefined && prepared.externalId !== externalId)
              return yield* invalid(name, `The access token is of the account ${prepared.externalId}`, [
                "accessToken"
              ])
            return (agent) => Effect.asVoid(prepared.insert(agent))
          })
        }
      }

      const changeStep = Effect.fn(function* (
        name: string,
        row: StoredChannel,
        configured: ConfiguredChannel
      ) {
        const before = valuesOf(row)
        const { accessToken, secrets, ...values } = { ...defaults, ...configured }
        const hasNewSecrets = yield* hasOtherSecrets(row, configured)
        const isChanged = canonical(before) !== canonical(values)
        if (!isChanged && !hasNewSecrets) return undefined
        const after = { ...values, ...(hasNewSecrets ? { hiddenValues: "changed" } : {}) }
        // An empty value removes a setting.
        const removed = Object.keys(before.settings).filter(
          (setting) => !Object.hasOwn(values.settings, setting)
        )
        const changes = {
          ...values,
          ...(accessToken === undefined ? {} : { accessToken }),
          ...(secrets === undefined ? {} : { secrets }),
          settings: { ...Object.fromEntries(removed.map((setting) => [setting, ""])), ...values.settings }
        }
        const step: PartStep = {
          path: pathOf(name),
          change: { field: `channels.${name}`, before, after },
          frees: row.active && !values.active ? row.id : undefined,
          prepare: (by, freed) =>
            Effect.map(
              channels.preparePatch(by, row.id, changes, row.version, freed),
              (stored) => () => Effect.asVoid(stored)
            )
        }
        return step
      })

      const removeStep = (row: StoredChannel, all: ChannelParts): PartStep => ({
        ...partStep(
          pathOf(nameOf(row, all)),
          { before: configuredChannelOf(row), after: null },
          ({ tenantId }) => channels.remove({ tenantId }, row.id)
        ),
        frees: row.id
      })

      /** The planned changes; none when the file has no `channels`. */
      const steps = Effect.fn("ConfiguredChannels.steps")(function* (
        all: ChannelParts,
        configured: ChannelsByName | undefined
      ) {
        if (configured === undefined) return []
        const named = new Set<string>()
        const createdOrChanged: Array<PartStep> = []
        for (const [name, one] of Object.entries(configured)) {
          const row = yield* findConnection(name, all)
          if (row !== undefined && named.has(row.id))
            return yield* invalid(name, "Another entry names the same account", pathOf(name))
          if (row !== undefined) named.add(row.id)
          const step = row === undefined ? createStep(name, one) : yield* changeStep(name, row, one)
          if (step !== undefined) createdOrChanged.push(step)
        }
        const removed = all.filter(({ id }) => !named.has(id)).map((row) => removeStep(row, all))
        return [...removed, ...createdOrChanged]
      })

      return { load, steps, toFileForm } as const
    })
  }
) {}
