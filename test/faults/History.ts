/** Requests to a server under faults with their answers, and the state that is found afterwards. */

/** `status` 0: no answer came, so the outcome is unknown. */
export interface Asked {
  readonly kind: string
  readonly status: number
  /** The error's code as the envelope has it; null without an envelope, or when it succeeded. */
  readonly code: string | null
  readonly milliseconds: number
}

export interface Turn extends Asked {
  /** Words that are unique to this operation. */
  readonly mark: string
  readonly persist: boolean
  /** A stream said `data-done`, or a whole answer came with 200. */
  readonly done: boolean
}

export interface Creation extends Asked {
  readonly mark: string
  readonly idempotencyKey: string | null
  readonly sourceId: string | null
  readonly data: string
}

export interface Deletion extends Asked {
  readonly sourceId: string
  readonly mark: string
}

export interface Delivery extends Asked {
  readonly messageId: string
}

export interface Said extends Asked {
  readonly mark: string
}

export interface Taking extends Asked {
  readonly conversationId: string
  /** When the answer was here. */
  readonly at: number
}

export interface Payment extends Asked {
  readonly eventId: string
  readonly credits: number
}

export interface Plan extends Asked {
  readonly eventId: string
  /** When the provider says that it happened; no two are alike. */
  readonly created: number
  readonly plan: string
}

export interface KeyUse extends Asked {
  readonly keyId: string
}

export interface History {
  readonly asked: Array<Asked>
  readonly turns: Array<Turn>
  readonly creations: Array<Creation>
  readonly deletions: Array<Deletion>
  readonly deliveries: Array<Delivery>
  readonly said: Array<Said>
  readonly takings: Array<Taking>
  readonly payments: Array<Payment>
  readonly plans: Array<Plan>
  readonly revocations: Array<KeyUse>
}

export const emptyHistory = (): History => ({
  asked: [],
  turns: [],
  creations: [],
  deletions: [],
  deliveries: [],
  said: [],
  takings: [],
  payments: [],
  plans: [],
  revocations: []
})

export interface StoredMessage {
  readonly id: string
  readonly conversationId: string
  readonly position: number
  readonly role: string
  readonly author: string | null
  readonly content: string
  readonly channelMessageId: string | null
  readonly answeredBy: string | null
  readonly createdAt: number
}

export interface Found {
  readonly messages: ReadonlyArray<StoredMessage>
  readonly runs: ReadonlyArray<{
    readonly id: string
    readonly status: string
    readonly messageId: string | null
    readonly userMessageId: string
    readonly last: string | null
  }>
  readonly sources: ReadonlyArray<{
    readonly id: string
    readonly name: string
    readonly status: string
    readonly lastError: string | null
  }>
  readonly ingestionJobs: ReadonlyArray<{
    readonly id: string
    readonly status: string
    readonly error: string | null
  }>
  /** Those that have not ended. */
  readonly jobs: ReadonlyArray<{ readonly id: string; readonly queue: string; readonly state: string }>
  readonly inbox: ReadonlyArray<{ readonly messageId: string; readonly state: string }>
  readonly outbox: ReadonlyArray<{
    readonly id: string
    readonly state: string
    readonly resent: boolean
    readonly lastError: string | null
  }>
  /** The messages provider's record: how often it took each part. */
  readonly taken: ReadonlyMap<string, number>
  readonly reserved: number
  readonly counted: number
  readonly granted: number
  /** The plan that the tenant is on; null without a subscription. */
  readonly plan: string | null
  /** Status of a request with each key that was revoked. */
  readonly revoked: ReadonlyMap<string, number>
  /** Marks of deleted sources that a search still finds. */
  readonly retrievable: ReadonlyArray<string>
  /** Pages as walked: conversations, and the messages of each. */
  readonly walked: {
    readonly conversations: ReadonlyArray<string>
    readonly messages: ReadonlyMap<string, ReadonlyArray<string>>
  }
  /** What the list should have. */
  readonly listed: ReadonlyArray<string>
}
