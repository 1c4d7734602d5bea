/**
 * A limit shared by many owners (tenants, keys, tokens, addresses), so that none of them can use all of it.
 *
 * - **Permits** are held while something is done. An owner may have a cap (`maxPermitsPerOwner`), for permits that are
 *   held for long, because they cannot be taken back.
 * - **Waiting** is bounded. Owners are served round-robin, and within an owner first come, first served. An owner with
 *   one waiter waits for at most one permit of each other owner, however many waiters those have. When the queue is
 *   full, the newest waiter of the owner with the most waiters is displaced by an owner with fewer.
 * - **Revocable** permits (an idle connection, a body that is still being read) may exceed any fair share while nobody
 *   else needs them. They are revoked, the oldest first, from the owner that holds most, and within that owner from the
 *   part (such as a visitor of a tenant) that holds most.
 *
 * The class is synchronous, for Node's events, and never yields. {@link FairLimiter.withPermit} and
 * {@link FairLimiter.acquire} are its Effect interface. Each operation takes O(log owners). An owner without permits
 * and waiters uses no memory.
 */
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { FairAccount } from "./FairAccount.ts"
import { FairQueue, Heap, type Waiter } from "./FairQueue.ts"
import { type LimitMetrics, metricsOf } from "./LimitMetrics.ts"

/** There is no permit, and no place in the queue. `limit` is the name of the limit. */
export class LimitReached extends Data.TaggedError("LimitReached")<{ readonly limit: string | null }> {}

export interface Limits {
  /** The limit's name in errors and metrics; null for a limit without metrics. */
  readonly name: string | null
  /** Number of permits of all owners together. */
  readonly permits: number
  /** Maximum number of permits of one owner; default: all. */
  readonly maxPermitsPerOwner?: number
  /** Maximum number of waiters of all owners together; default: 0. */
  readonly maxWaiting?: number
  /** Time-out of a waiting effect, after which it fails with {@link LimitReached}; none by default. */
  readonly maxWait?: Duration.DurationInput
}

export interface PermitOptions {
  /** Weight of a permit; default: 1. An effect on behalf of several owners may count as that many permits. */
  readonly amount?: number
  /** A part of the owner, such as a visitor of a tenant. The parts of an owner also share revocable permits fairly. */
  readonly part?: string
  /**
   * Lets the request wait. Called when it has been granted, or displaced. Not called if the request is decided at once.
   */
  readonly onSettled?: (granted: boolean) => void
  /** Makes the permit revocable. Called when it has been revoked. */
  readonly onRevoked?: () => void
}

/** A requested permit. Only the limiter changes its fields. */
export class Permit {
  readonly owner: string
  readonly part: string
  readonly options: PermitOptions
  state: "waiting" | "granted" | "refused" | "revoked" | "released" = "refused"
  amount: number
  waiter: Waiter<Permit> | null = null
  readonly #limiter: FairLimiter

  constructor(limiter: FairLimiter, owner: string, amount: number, options: PermitOptions) {
    this.#limiter = limiter
    this.owner = owner
    this.part = options.part ?? ""
    this.amount = amount
    this.options = options
  }

  /** Releases the permit, or stops waiting for it. No effect if it is already released. */
  release(): void {
    this.#limiter.release(this)
  }

  /** Changes the amount. False, without a change, when that many permits are not available. */
  resize(amount: number): boolean {
    return this.#limiter.resize(this, amount)
  }

  /** A revocable permit is not revoked while it is in use. Afterwards it is the owner's newest one. */
  setInUse(inUse: boolean): void {
    this.#limiter.setInUse(this, inUse)
  }
}

export class FairLimiter {
  readonly #limits: Required<Limits>
  readonly #accounts = new Map<string, FairAccount<Permit>>()
  /** Accounts with revocable permits; the one that holds most is on top. */
  readonly #heaviest = new Heap<FairAccount<Permit>>(({ held }) => held)
  readonly #queue: FairQueue<Permit>
  readonly #metrics: LimitMetrics
  /** Callbacks that are called after the limiter's state is consistent, because they may use it. */
  readonly #callbacks: Array<() => void> = []
  #held = 0
  #isRunningCallbacks = false

  constructor(limits: Limits) {
    const { maxPermitsPerOwner = limits.permits, maxWait = Duration.infinity, maxWaiting = 0 } = limits
    this.#limits = {
      ...limits,
      maxWait,
      maxWaiting,
      maxPermitsPerOwner: Math.max(1, Math.min(limits.permits, maxPermitsPerOwner))
    }
    this.#queue = new FairQueue(maxWaiting)
    this.#metrics = metricsOf(limits.name)
    this.#metrics.permits.unsafeUpdate(limits.permits, [])
    this.#metrics.refused.unsafeUpdate(0, [])
    this.#metrics.revoked.unsafeUpdate(0, [])
    this.#grantWaiting()
  }

  get held(): number {
    return this.#held
  }

  get waiting(): number {
    return this.#queue.size
  }

  heldBy(owner: string): number {
    return this.#accounts.get(owner)?.held ?? 0
  }

  /** Grants a permit, queues the request if it may wait, or refuses it. See the `state` of the result. */
  request(owner: string, options: PermitOptions = {}): Permit {
    const amount = Math.min(options.amount ?? 1, this.#limits.maxPermitsPerOwner)
    const permit = new Permit(this, owner, amount, options)
    const first = this.#queue.next === null && this.#queue.sizeOf(owner) === 0
    if (first && this.#makeRoom(permit, amount)) this.#grant(permit)
    else if (options.onSettled !== undefined) this.#wait(permit)
    if (permit.state === "refused") this.#metrics.refused.unsafeUpdate(1, [])
    this.#grantWaiting()
    return permit
  }

  /** A permit if one is available now, else null. */
  tryAcquire(owner: string, options: Omit<PermitOptions, "onSettled"> = {}): Permit | null {
    const permit = this.request(owner, options)
    return permit.state === "granted" ? permit : null
  }

  /** Revokes the oldest revocable permit of `owner`; false when it has none. */
  revokeOldestOf(owner: string): boolean {
    const oldest = this.#accounts.get(owner)?.oldest
    if (oldest === undefined) return false
    this.#revoke(oldest)
    this.#grantWaiting()
    return true
  }

  release(permit: Permit): void {
    const { state } = permit
    if (state !== "granted" && state !== "waiting") return
    if (state === "granted") this.#takeBack(permit, "released")
    else this.#leave(permit, "released")
    this.#grantWaiting()
  }

  resize(permit: Permit, amount: number): boolean {
    if (permit.state !== "granted") return false
    const more = amount - permit.amount
    if (more > 0 && !this.#makeRoom(permit, more)) return false
    permit.amount = amount
    const account = this.#accountOf(permit.owner)
    account.grow(permit, more)
    this.#addHeld(account, permit.owner, more)
    this.#grantWaiting()
    return true
  }

  setInUse(permit: Permit, inUse: boolean): void {
    if (permit.state !== "granted" || permit.options.onRevoked === undefined) return
    const account = this.#accountOf(permit.owner)
    account.setRevocable(permit, !inUse)
    this.#rank(account)
    this.#grantWaiting()
  }

  #accountOf(owner: string): FairAccount<Permit> {
    const known = this.#accounts.get(owner)
    if (known !== undefined) return known
    const account = new FairAccount<Permit>()
    this.#accounts.set(owner, account)
    return account
  }

  #isWithinCap(owner: string, amount: number): boolean {
    return this.heldBy(owner) + amount <= this.#limits.maxPermitsPerOwner
  }

  /**
   * Revokes permits until `amount` are free, from owners, or parts of the same owner, that hold more than this one
   * will.
   */
  #makeRoom({ owner, part }: Permit, amount: number): boolean {
    for (;;) {
      const isWithinCap = this.#isWithinCap(owner, amount)
      if (isWithinCap && this.#limits.permits - this.#held >= amount) return true
      const ownAccount = this.#accounts.get(owner)
      const heaviest = isWithinCap ? this.#heaviest.top : undefined
      const others =
        heaviest !== undefined && heaviest.held > (ownAccount?.held ?? 0) + amount ? heaviest : undefined
      const own =
        ownAccount !== undefined && ownAccount.heaviestPart > ownAccount.heldBy(part) + amount
          ? ownAccount
          : undefined
      const oldest = (others ?? own)?.oldest
      if (oldest === undefined) return false
      this.#revoke(oldest)
    }
  }

  #grant(permit: Permit): void {
    permit.state = "granted"
    const account = this.#accountOf(permit.owner)
    account.add(permit)
    if (permit.options.onRevoked !== undefined) account.setRevocable(permit, true)
    this.#addHeld(account, permit.owner, permit.amount)
  }

  #takeBack(permit: Permit, state: "released" | "revoked"): void {
    permit.state = state
    const account = this.#accountOf(permit.owner)
    account.remove(permit)
    this.#addHeld(account, permit.owner, -permit.amount)
  }

  #revoke(permit: Permit): void {
    this.#takeBack(permit, "revoked")
    this.#metrics.revoked.unsafeUpdate(1, [])
    this.#callbacks.push(() => permit.options.onRevoked?.())
  }

  /** Changes the number of permits of `account` by `more`, which may be negative. */
  #addHeld(account: FairAccount<Permit>, owner: string, more: number): void {
    this.#held += more
    this.#rank(account)
    if (account.isEmpty) this.#accounts.delete(owner)
    this.#updatePause(owner)
  }

  #rank(account: FairAccount<Permit>): void {
    if (account.oldest !== undefined) this.#heaviest.update(account)
    else this.#heaviest.remove(account)
  }

  #wait(permit: Permit): void {
    const added = this.#queue.add(permit.owner, permit)
    if (added === null) return
    permit.state = "waiting"
    permit.waiter = added.waiter
    this.#updatePause(permit.owner)
    if (added.displaced === null) return
    const displaced = added.displaced.item
    this.#leave(displaced, "refused")
    this.#metrics.refused.unsafeUpdate(1, [])
    this.#callbacks.push(() => displaced.options.onSettled?.(false))
  }

  #leave(permit: Permit, state: "released" | "refused"): void {
    permit.state = state
    if (permit.waiter !== null) this.#queue.delete(permit.waiter)
    permit.waiter = null
    this.#updatePause(permit.owner)
  }

  /** Pauses an owner in the queue that may not hold what it waits for. */
  #updatePause(owner: string): void {
    const first = this.#queue.firstOf(owner)
    if (first === null) return
    if (this.#isWithinCap(owner, first.item.amount)) this.#queue.resume(owner)
    else this.#queue.pause(owner)
  }

  /** Grants what can be granted now, then runs the callbacks. A callback may use the limiter. */
  #grantWaiting(): void {
    for (let next = this.#queue.next; next !== null; next = this.#queue.next) {
      if (!this.#makeRoom(next.item, next.item.amount)) break
      this.#queue.shift()
      const { item: permit } = next
      permit.waiter = null
      this.#grant(permit)
      this.#callbacks.push(() => permit.options.onSettled?.(true))
    }
    this.#metrics.held.unsafeUpdate(this.#held, [])
    this.#metrics.waiting.unsafeUpdate(this.#queue.size, [])
    this.#metrics.owners.unsafeUpdate(this.#accounts.size, [])
    if (this.#isRunningCallbacks) return
    this.#isRunningCallbacks = true
    let called = 0
    try {
      for (const call of this.#callbacks) {
        called++
        call()
      }
    } finally {
      // If a callback throws, the remaining ones are called the next time.
      this.#callbacks.splice(0, called)
      this.#isRunningCallbacks = false
    }
  }

  /** Runs the effect with a permit of `owner`. Waits for it if there is a place in the queue. */
  withPermit(owner: string) {
    return <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | LimitReached, R> =>
      Effect.uninterruptibleMask((restore) => {
        const { granted, permit } = this.#requestOrWait(owner, 1)
        return Effect.ensuring(
          restore(Effect.zipRight(granted, effect)),
          Effect.sync(() => permit.release())
        )
      })
  }

  /** Holds a permit of `owner` until the scope closes. Waits for it if there is a place in the queue. */
  acquire(owner: string, amount = 1): Effect.Effect<void, LimitReached, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => this.#requestOrWait(owner, amount)),
      ({ permit }) => Effect.sync(() => permit.release())
    ).pipe(
      // A request that was refused does not wait on until the scope closes.
      Effect.flatMap(({ granted, permit }) =>
        Effect.onError(granted, () => Effect.sync(() => permit.release()))
      )
    )
  }

  /**
   * Holds a revocable permit of `owner`, if one is available now, until the scope closes. Returns an effect that ends
   * when it is revoked.
   */
  acquireRevocable(
    owner: string,
    options: Pick<PermitOptions, "amount" | "part"> = {}
  ): Effect.Effect<Effect.Effect<void>, LimitReached, Scope.Scope> {
    return Effect.gen(this, function* () {
      const revoked = yield* Deferred.make<void>()
      const onRevoked = () => Deferred.unsafeDone(revoked, Effect.void)
      const permit = yield* Effect.acquireRelease(
        Effect.sync(() => this.request(owner, { ...options, onRevoked })),
        (asked) => Effect.sync(() => asked.release())
      )
      if (permit.state === "refused") return yield* this.#limitReached
      return Deferred.await(revoked)
    })
  }

  get #limitReached() {
    return new LimitReached({ limit: this.#limits.name })
  }

  #requestOrWait(owner: string, amount: number) {
    let settle: (granted: boolean) => void = () => {}
    const permit = this.request(owner, { amount, onSettled: (granted) => settle(granted) })
    const decided = (granted: boolean) => (granted ? Effect.void : this.#limitReached)
    if (permit.state !== "waiting") return { permit, granted: decided(permit.state === "granted") } as const
    const settled = Effect.async<void, LimitReached>((resume) => {
      if (permit.state !== "waiting") return resume(decided(permit.state === "granted"))
      settle = (granted) => resume(decided(granted))
    })
    // Callers that cannot be interrupted, such as transactions and finalizers, wait no longer than others.
    const granted = Effect.timeoutFail(Effect.interruptible(settled), {
      duration: this.#limits.maxWait,
      onTimeout: () => this.#limitReached
    })
    return { permit, granted } as const
  }
}
