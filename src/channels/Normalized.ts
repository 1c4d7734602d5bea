/** The events of one delivery of a provider, normalized. */
import type * as DateTime from "effect/DateTime"
import type { Normalized } from "../capabilities/ChannelAdapters.ts"
import type { Arrival, DeliveryStatus } from "../domain/channels/Channel.ts"

/** Reads a parsed body of any form; never throws. `now` replaces missing timestamps. */
export type Normalizer = (body: unknown, now: DateTime.Utc) => Normalized

export const emptyDelivery: Normalized = { arrivals: [], statuses: [], ignored: 0 }
/** The result of an ignored item. */
export const ignored: Normalized = { ...emptyDelivery, ignored: 1 }

export const arrivalOrIgnored = (arrival: Arrival | undefined): Normalized =>
  arrival === undefined ? ignored : { ...emptyDelivery, arrivals: [arrival] }

export const statusesOrIgnored = (statuses: ReadonlyArray<DeliveryStatus>): Normalized =>
  statuses.length === 0 ? ignored : { ...emptyDelivery, statuses }

/** Combines results in order. */
export const combine = (parts: ReadonlyArray<Normalized>): Normalized => ({
  arrivals: parts.flatMap(({ arrivals }) => arrivals),
  statuses: parts.flatMap(({ statuses }) => statuses),
  ignored: parts.reduce((sum, part) => sum + part.ignored, 0)
})
