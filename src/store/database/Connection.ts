/**
 * Statements on the connections of a pool. An interrupted caller returns at once. Its statement is not cancelled: it
 * runs to its end, and the connection returns to the pool afterwards. (`PgClient` asks the server to cancel the
 * connection's current statement, which by then may be another caller's.)
 */
import type { Connection } from "@effect/sql/SqlConnection"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Pg from "pg"
import { sqlErrorOf } from "./Failure.ts"
import type { PreparedStatements } from "./PreparedStatements.ts"
import { TenantQuery } from "./TenantQuery.ts"
import { everyTenant, sessionOf } from "../../concurrency/TenantSession.ts"

interface Query {
  readonly text: string
  readonly values: Array<unknown>
  readonly name?: string
  readonly rowMode?: "array"
}

/** Session values with which a statement sees the rows of one tenant. */
interface SessionValues {
  readonly session: string
  readonly role: string
  /** Whether the connection has prepared the statement that sets them. */
  readonly isPrepared: boolean
}

type Answer = Pg.QueryResult | ReadonlyArray<Pg.QueryResult>
type Done = (answer: Effect.Effect<Answer, SqlError>) => void

/** The driver returns one result for each statement of a text. */
const isList = (answer: Answer): answer is ReadonlyArray<Pg.QueryResult> => Array.isArray(answer)

const rowsOf = (answer: Answer): ReadonlyArray<object> =>
  isList(answer) ? answer.map(({ rows }) => rows) : answer.rows

const valuesOf = (answer: Answer): ReadonlyArray<ReadonlyArray<unknown>> =>
  isList(answer) ? [] : answer.rows

const noConnection = (error: Error | undefined) =>
  Effect.fail(sqlErrorOf(error ?? new Error("There is no connection to the database.")))

/**
 * The server is read-only, for example a primary that has become a standby. A new connection may reach the new primary;
 * this one cannot.
 */
const isReadOnly = (error: Error) => "code" in error && error.code === "25006"

type Answered = (error: Error | null | undefined, answer: Answer) => void

/** Sends one query, preceded by the statement that sets `sessionValues`, if given. */
const sendQuery = (
  client: Pg.ClientBase,
  query: Query,
  sessionValues: SessionValues | null,
  answered: Answered
) => {
  if (sessionValues === null) return void client.query(query, answered)
  // Several messages that end with one Sync, also without values.
  const extended = { ...query, queryMode: "extended" }
  const inner = new Pg.Query(extended, (error: Error | undefined, answer: unknown) =>
    Reflect.apply(answered, undefined, [error, answer])
  )
  client.query(new TenantQuery(inner, sessionValues.session, sessionValues.role, sessionValues.isPrepared))
}

/** Runs one query. `onBroken` is called with an error after which the connection cannot be used. */
const runQuery = (
  client: Pg.ClientBase,
  query: Query,
  sessionValues: SessionValues | null,
  onBroken: (error: Error) => void,
  done: Done
) => {
  sendQuery(client, query, sessionValues, (error, answer) => {
    if (error === null || error === undefined) return done(Effect.succeed(answer))
    if (isReadOnly(error)) onBroken(error)
    done(Effect.fail(sqlErrorOf(error, client)))
  })
}

abstract class Statements implements Connection {
  /** `mayPrepare`: false for a statement that must be planned at each execution. */
  protected abstract run(query: Query, mayPrepare?: boolean): Effect.Effect<Answer, SqlError>

  execute(text: string, params: ReadonlyArray<unknown>): Effect.Effect<ReadonlyArray<object>, SqlError> {
    return Effect.map(this.run({ text, values: [...params] }), rowsOf)
  }

  executeRaw(text: string, params: ReadonlyArray<unknown>): Effect.Effect<Answer, SqlError> {
    return this.run({ text, values: [...params] })
  }

  executeValues(
    text: string,
    params: ReadonlyArray<unknown>
  ): Effect.Effect<ReadonlyArray<ReadonlyArray<unknown>>, SqlError> {
    return Effect.map(this.run({ text, values: [...params], rowMode: "array" }), valuesOf)
  }

  executeUnprepared(
    text: string,
    params: ReadonlyArray<unknown>
  ): Effect.Effect<ReadonlyArray<object>, SqlError> {
    return Effect.map(this.run({ text, values: [...params] }, false), rowsOf)
  }

  /** Reads all rows at once, because a cursor would hold the embedded database's only connection. */
  executeStream(text: string, params: ReadonlyArray<unknown>): Stream.Stream<object, SqlError> {
    return Stream.fromIterableEffect(this.execute(text, params))
  }
}

/** Runs each statement on any free connection. */
export class PooledStatements extends Statements {
  readonly #pool: Pg.Pool
  readonly #prepared: PreparedStatements
  readonly #tenantRole: string | null

  /** `tenantRole`: the role that tenants' statements run as; null: all statements run as the connection's role. */
  constructor(pool: Pg.Pool, prepared: PreparedStatements, tenantRole: string | null) {
    super()
    this.#pool = pool
    this.#prepared = prepared
    this.#tenantRole = tenantRole
  }

  protected run(query: Query, mayPrepare = true): Effect.Effect<Answer, SqlError> {
    const role = this.#tenantRole
    if (role === null) return this.#run(query, mayPrepare, null)
    return Effect.withFiberRuntime((fiber) => {
      const session = sessionOf(fiber, query.text, query.values)
      return this.#run(
        query,
        mayPrepare,
        session === everyTenant ? null : { session, role, isPrepared: true }
      )
    })
  }

  #run(
    query: Query,
    mayPrepare: boolean,
    sessionValues: SessionValues | null
  ): Effect.Effect<Answer, SqlError> {
    return Effect.async<Answer, SqlError>((resume) => {
      let isWaiting = true
      this.#pool.connect((error, client, release) => {
        if (client === undefined) return resume(noConnection(error))
        // The caller was interrupted.
        if (!isWaiting) return release()
        this.#runQuery(client, release, query, mayPrepare, sessionValues, resume)
      })
      return Effect.sync(() => {
        isWaiting = false
      })
    })
  }

  #runQuery(
    client: Pg.PoolClient,
    release: (error?: Error) => void,
    query: Query,
    mayPrepare: boolean,
    sessionValues: SessionValues | null,
    resume: Done
  ) {
    let broken: Error | undefined
    // Without a listener for errors, a broken connection would end the process.
    const onError = (error: Error) => {
      broken = error
    }
    client.on("error", onError)
    const done: Done = (answer) => {
      client.off("error", onError)
      release(broken)
      resume(answer)
    }
    const name = mayPrepare ? this.#prepared.nameOf(query.text) : undefined
    const valuesToSet =
      sessionValues === null ? null : { ...sessionValues, isPrepared: this.#prepared.isEnabled }
    if (name === undefined && valuesToSet?.isPrepared !== true)
      return runQuery(client, query, valuesToSet, onError, done)
    sendQuery(client, name === undefined ? query : { ...query, name }, valuesToSet, (error, answer) => {
      if (error === null || error === undefined) return done(Effect.succeed(answer))
      if (this.#prepared.forgetIfUnusable(error))
        return runQuery(
          client,
          query,
          valuesToSet === null ? null : { ...valuesToSet, isPrepared: false },
          onError,
          done
        )
      if (isReadOnly(error)) onError(error)
      return done(Effect.fail(sqlErrorOf(error, client)))
    })
  }
}

/** Statements that control transactions. They read no rows, and some must be the first of their transaction. */
const transactionControl = /^\s*(?:begin|commit|rollback|savepoint|release|set|start)\b/iu

/**
 * Runs statements on one connection, which the holder keeps, usually for a transaction. None is prepared, because a
 * prepared one that fails would end the transaction.
 */
class HeldConnection extends Statements {
  readonly #client: Pg.PoolClient
  readonly #onBroken: (error: Error) => void
  readonly #tenantRole: string | null
  /** The session last set in the transaction; undefined outside one, and after a rollback, which reverts it. */
  #session: string | undefined
  #isTransaction = false

  constructor(client: Pg.PoolClient, onBroken: (error: Error) => void, tenantRole: string | null) {
    super()
    this.#client = client
    this.#onBroken = onBroken
    this.#tenantRole = tenantRole
  }

  protected run(query: Query): Effect.Effect<Answer, SqlError> {
    const role = this.#tenantRole
    return Effect.withFiberRuntime((fiber) => {
      const sessionValues = role === null ? null : this.#sessionValuesOf(fiber, query, role)
      return Effect.async<Answer, SqlError>((resume) =>
        runQuery(this.#client, query, sessionValues, this.#onBroken, resume)
      )
    })
  }

  #sessionValuesOf(
    fiber: Fiber.RuntimeFiber<unknown, unknown>,
    { text, values }: Query,
    role: string
  ): SessionValues | null {
    const keyword = transactionControl.exec(text)?.[0].trim().toLowerCase()
    if (keyword !== undefined) {
      this.#trackTransaction(keyword, text)
      return null
    }
    const session = sessionOf(fiber, text, values)
    const isAlreadySet = this.#isTransaction ? session === this.#session : session === everyTenant
    this.#session = session
    if (isAlreadySet) return null
    return { session, role, isPrepared: false }
  }

  #trackTransaction(keyword: string, text: string) {
    if (keyword === "begin" || keyword === "start") {
      this.#isTransaction = true
      this.#session = everyTenant
    } else if (keyword === "rollback") {
      this.#session = undefined
      this.#isTransaction &&= /\bto\b/iu.test(text)
    } else if (keyword === "commit") this.#isTransaction = false
  }
}

/** A connection for one holder, until the scope closes. */
export const scopedConnection = (
  pool: Pg.Pool,
  tenantRole: string | null
): Effect.Effect<Connection, SqlError, Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.scope, (scope) =>
      restore(
        Effect.async<{ readonly client: Pg.PoolClient; readonly release: (error?: Error) => void }, SqlError>(
          (resume) => {
            let isWaiting = true
            pool.connect((error, client, release) => {
              if (client === undefined) resume(noConnection(error))
              else if (isWaiting) resume(Effect.succeed({ client, release }))
              else release()
            })
            return Effect.sync(() => {
              isWaiting = false
            })
          }
        )
      ).pipe(
        Effect.flatMap(({ client, release }) => {
          let broken: Error | undefined
          const onError = (error: Error) => {
            broken = error
          }
          client.on("error", onError)
          const end = Effect.sync(() => {
            client.off("error", onError)
            release(broken)
          })
          return Effect.as(Scope.addFinalizer(scope, end), new HeldConnection(client, onError, tenantRole))
        })
      )
    )
  )
