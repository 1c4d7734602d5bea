/** Passkeys of the dashboard: people add and remove their own, and sign in with them. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Encoding from "effect/Encoding"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { Credentials, PasskeyProofs } from "../../capabilities/Credentials.ts"
import { DedupeStore } from "../../capabilities/DedupeStore.ts"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import type { SessionUser } from "../../domain/accounts/Access.ts"
import { Email, User } from "../../domain/accounts/Account.ts"
import {
  type CreatePasskey,
  type CreationOptions,
  PasskeyId,
  type PasskeySite,
  type RequestOptions,
  type AuthenticationResponse
} from "../../domain/accounts/Passkey.ts"
import type { SessionOrigin } from "../../domain/accounts/Session.ts"
import { Conflict, Unauthorized, invalidField, noSuch } from "../../domain/Errors.ts"
import { typeId, UserId } from "../../domain/Ids.ts"
import { PasskeyStore } from "../../store/accounts/Passkeys.ts"
import { SessionStore } from "../../store/accounts/Sessions.ts"
import { TeamStore } from "../../store/accounts/Team.ts"
import { sessionLifetime, signInThrottle, tooManyFailures, signInLimits, tooManySignIns } from "./Accounts.ts"

/** Time from the challenge to the authenticator's answer. */
export const challengeLifetime = Duration.minutes(5)

/** Maximum passkeys of one person. */
const maxPasskeys = 20

/** Account name for counting failures: before a passkey is proven the person is unknown. */
const unknownPerson = Email.make("passkeys@sign-in")

/** The sealed state that the browser keeps between the challenge and the answer. */
const Flow = Schema.parseJson(
  Schema.Struct({
    challenge: Schema.String,
    /** The user and session that add a passkey; null for a sign-in. */
    adding: Schema.NullOr(Schema.Struct({ userId: UserId, session: Schema.NullOr(Schema.String) })),
    until: Schema.Number
  })
)
type Flow = typeof Flow.Type
const encodeFlow = Schema.encode(Flow)
const decodeFlow = Schema.decodeOption(Flow)

const expiredRequest = () =>
  invalidField(
    ["credential"],
    "Expected the answer to the last challenge",
    "It took too long, or was started in another window. Try again."
  )
const invalidPasskey = () =>
  invalidField(
    ["credential"],
    "Expected a verified passkey of this address",
    "The passkey was not made for this dashboard, or without checking who you are."
  )
const passkeyExists = () => new Conflict({ message: "This passkey is known already." })
const tooManyPasskeys = () =>
  new Conflict({ message: `You have ${maxPasskeys} passkeys. Remove one before you add another.` })
const unknownPasskey = () => new Unauthorized({ message: "This passkey is not registered." })

export class Passkeys extends Effect.Service<Passkeys>()("usecases/accounts/Passkeys", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const box = yield* SecretBox
    const credentials = yield* Credentials
    const proofs = yield* PasskeyProofs
    const dedupe = yield* DedupeStore
    const store = yield* PasskeyStore
    const sessions = yield* SessionStore
    const team = yield* TeamStore
    const limiter = new FairLimiter({ name: "passkey-sign-ins", ...signInLimits })

    /** A challenge, and the sealed state for the browser. */
    const beginFlow = Effect.fn("Passkeys.beginFlow")(function* (adding: Flow["adding"]) {
      const challenge = yield* credentials.token
      const until = (yield* Clock.currentTimeMillis) + Duration.toMillis(challengeLifetime)
      const text = yield* Effect.orDie(encodeFlow({ challenge, adding, until }))
      return { challenge, flow: Redacted.make(yield* box.seal("passkey-flow", text)) }
    })

    /** The state that this browser began with. None when it has expired or was answered before, successfully or not. */
    const takeFlow = Effect.fn("Passkeys.takeFlow")(function* (sealed: Option.Option<Redacted.Redacted>) {
      const text = Option.isNone(sealed)
        ? Option.none()
        : yield* box.open("passkey-flow", Redacted.value(sealed.value))
      const flow = Option.flatMap(text, decodeFlow)
      if (Option.isNone(flow) || flow.value.until < (yield* Clock.currentTimeMillis))
        return Option.none<Flow>()
      const isFirstUse = yield* Effect.mapError(
        dedupe.claim(`passkey:${flow.value.challenge}`, challengeLifetime),
        tooManySignIns
      )
      return isFirstUse ? flow : Option.none<Flow>()
    })

    /** Passkeys of the signed-in person, oldest first. */
    const list = Effect.fn("Passkeys.list")(function* (by: SessionUser) {
      return (yield* store.list(by, by.userId)).map(({ credentialId: _, ...passkey }) => passkey)
    })

    /** The options for the browser to create another passkey. */
    const beginAdding = Effect.fn("Passkeys.beginAdding")(function* (by: SessionUser, { rpId }: PasskeySite) {
      const existing = yield* store.list(by, by.userId)
      if (existing.length >= maxPasskeys) return yield* tooManyPasskeys()
      const { challenge, flow } = yield* beginFlow({ userId: by.userId, session: by.session })
      const options: typeof CreationOptions.Type = {
        challenge,
        rp: { id: rpId, name: "Spoke" },
        user: { id: Encoding.encodeBase64Url(by.userId), name: by.email, displayName: by.email },
        pubKeyCredParams: proofs.algorithms.map((alg) => ({ type: "public-key", alg })),
        excludeCredentials: existing.map(({ credentialId }) => ({ type: "public-key", id: credentialId })),
        authenticatorSelection: {
          residentKey: "required",
          requireResidentKey: true,
          userVerification: "required"
        },
        attestation: "none",
        timeout: Duration.toMillis(challengeLifetime)
      }
      return { options, flow }
    })

    /** Stores the browser's answer to {@link beginAdding}. Must come from the same browser and session. */
    const add = Effect.fn("Passkeys.add")(function* (
      by: SessionUser,
      sealed: Option.Option<Redacted.Redacted>,
      { credential, name }: CreatePasskey,
      site: PasskeySite
    ) {
      const flow = yield* takeFlow(sealed)
      const adding = Option.getOrNull(flow)?.adding
      if (Option.isNone(flow) || adding?.userId !== by.userId || adding.session !== by.session) {
        return yield* expiredRequest()
      }
      const proof = yield* proofs
        .verifyRegistration(credential, { ...site, challenge: flow.value.challenge })
        .pipe(
          Effect.tapError(({ message }) => Effect.logWarning("A passkey was not added", { reason: message })),
          Effect.mapError(invalidPasskey)
        )
      const id = PasskeyId.make(typeId("psk", yield* Clock.currentTimeMillis))
      const addition = Effect.gen(function* () {
        // Locked, so that a person who is removed or gets another password meanwhile adds no passkey.
        yield* team.lock(by)
        const existing = yield* store.list(by, by.userId)
        if (existing.length >= maxPasskeys) return yield* tooManyPasskeys()
        if (!(yield* sessions.isOpen(by, by.userId, Buffer.from(by.session ?? "", "base64url")))) {
          return yield* expiredRequest()
        }
        if (!(yield* store.insert(by, { ...proof, id, userId: by.userId, name })))
          return yield* passkeyExists()
        return yield* list(by)
      })
      const passkeys = yield* addition.pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die))
      const added = passkeys.find((each) => each.id === id)
      return added ?? (yield* noSuch("passkey"))
    })

    const remove = Effect.fn("Passkeys.remove")(function* (by: SessionUser, id: PasskeyId) {
      if (!(yield* store.remove(by, by.userId, id))) return yield* noSuch("passkey")
    })

    /** The options for any browser to sign in. They do not reveal who has a passkey. */
    const beginSignIn = Effect.fn("Passkeys.beginSignIn")(function* ({ rpId }: PasskeySite) {
      const { challenge, flow } = yield* beginFlow(null)
      const options: typeof RequestOptions.Type = {
        challenge,
        rpId,
        userVerification: "required",
        timeout: Duration.toMillis(challengeLifetime)
      }
      return { options, flow }
    })

    /** Logs why a sign-in is refused. The caller does not learn the reason. */
    const refused = (reason: string) =>
      Effect.zipRight(
        Effect.logWarning("A sign-in with a passkey was refused", { reason }),
        Effect.fail(unknownPasskey())
      )

    const openSession = Effect.fn("Passkeys.openSession")(function* (
      sealed: Option.Option<Redacted.Redacted>,
      credential: AuthenticationResponse,
      site: PasskeySite,
      origin: typeof SessionOrigin.Type
    ) {
      const flow = yield* takeFlow(sealed)
      if (Option.isNone(flow) || flow.value.adding !== null) return yield* refused("no such challenge")
      const found = yield* store.find(credential.id)
      if (Option.isNone(found)) return yield* refused("no such passkey")
      const passkey = found.value
      const { tenantId, userId } = passkey
      const { userHandle = null } = credential.response
      if (userHandle !== null && userHandle !== Encoding.encodeBase64Url(userId)) {
        return yield* refused("another person's")
      }
      const state = yield* proofs
        .verifySignIn(credential, { ...site, challenge: flow.value.challenge }, passkey)
        .pipe(Effect.catchTag("PasskeyRejected", ({ message }) => refused(message)))
      const token = Redacted.make(yield* credentials.token)
      const fingerprint = yield* credentials.fingerprint(token)
      const entry = Effect.gen(function* () {
        // Locked, so that a person who is removed or gets another password meanwhile does not sign in.
        yield* team.lock(passkey)
        if (!(yield* store.use(passkey, passkey.id, state))) return yield* refused("removed, or copied")
        const isOpened = yield* sessions.insert({
          fingerprint,
          tenantId,
          userId,
          method: "passkey",
          passwordHash: null,
          ...origin,
          lifetime: sessionLifetime
        })
        return isOpened ? undefined : yield* refused("switched off")
      })
      yield* entry.pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die))
      return { user: User.make({ id: userId, tenantId, email: passkey.email, role: passkey.role }), token }
    })

    /**
     * Opens a session for the person whose passkey answered {@link beginSignIn}, in the same browser. Failures of a
     * network are counted like those of passwords.
     */
    const signIn = Effect.fn("Passkeys.signIn")(function* (
      sealed: Option.Option<Redacted.Redacted>,
      credential: AuthenticationResponse,
      site: PasskeySite,
      origin: typeof SessionOrigin.Type
    ) {
      const network = origin.address ?? ""
      const attempt = { email: unknownPerson, address: network }
      const { failures, window } = signInThrottle
      const throttled = Effect.gen(function* () {
        const wait = yield* sessions.wait(attempt, window, failures)
        if (Option.isSome(wait)) return yield* tooManyFailures(wait.value)
        return yield* openSession(sealed, credential, site, origin).pipe(
          Effect.tapErrorTag("UNAUTHORIZED", () => sessions.fail(attempt, window, failures)),
          Effect.uninterruptible
        )
      })
      return yield* throttled.pipe(
        limiter.withPermit(network),
        Effect.catchTag("LimitReached", () => Effect.fail(tooManySignIns()))
      )
    })

    return { list, beginAdding, add, remove, beginSignIn, signIn } as const
  })
}) {}
