/**
 * A statement and the one that sets its tenant, sent together: the server runs everything before `Sync` as one
 * transaction. So the setting holds for this statement alone, even if a pooler gives each transaction another
 * connection. A separate statement would cost a round trip; a function around each would have to be planned.
 */
import * as Pg from "pg"
import { everyTenant } from "../../concurrency/TenantSession.ts"

export const sessionText = "select set_config('role', $1, true), set_config('spoke.tenant', $2, true)"
/** The name under which a connection without a pooler has prepared {@link sessionText}. */
export const sessionName = "spoke_session"

/** The methods that the driver calls on a query that it has sent. */
interface DriverQuery {
  readonly name?: string
  readonly text: string
  readonly _result: unknown
  readonly submit: (connection: Pg.Connection) => unknown
  readonly handleRowDescription: (message: unknown) => void
  readonly handleDataRow: (message: unknown) => void
  readonly handleCommandComplete: (message: unknown, connection: unknown) => void
  readonly handlePortalSuspended: (connection: unknown) => void
  readonly handleEmptyQuery: (connection: unknown) => void
  readonly handleError: (error: unknown, connection: unknown) => void
  readonly handleReadyForQuery: (connection: unknown) => void
  readonly handleCopyInResponse: (connection: unknown) => void
  readonly handleCopyData: (message: unknown, connection: unknown) => void
}

const isDriverQuery = (query: unknown): query is DriverQuery =>
  typeof query === "object" && query !== null && "handleReadyForQuery" in query

export class TenantQuery implements Pg.Submittable {
  readonly #query: DriverQuery
  readonly #values: Array<string>
  readonly #name: string
  /** False until `set_config` has ended, whose row and end are not passed on. */
  #isSessionSet = false

  /** `isPrepared`: the connection has prepared {@link sessionName}. */
  constructor(query: unknown, session: string, role: string, isPrepared: boolean) {
    if (!isDriverQuery(query)) throw new TypeError("The driver's queries have an unexpected form.")
    this.#query = query
    this.#values = session === everyTenant ? ["none", ""] : [role, session]
    this.#name = isPrepared ? sessionName : ""
  }

  get name() {
    return this.#query.name
  }

  get text() {
    return this.#query.text
  }

  /** The driver gives it the parsers of types. */
  get _result() {
    return this.#query._result
  }

  submit(connection: Pg.Connection): unknown {
    connection.stream.cork()
    try {
      if (this.#name === "") connection.parse({ name: "", text: sessionText, types: [] }, true)
      connection.bind({ portal: "", statement: this.#name, values: this.#values }, true)
      connection.execute({ portal: "" }, true)
      return this.#query.submit(connection)
    } finally {
      connection.stream.uncork()
    }
  }

  handleRowDescription(message: unknown) {
    this.#query.handleRowDescription(message)
  }

  handleDataRow(message: unknown) {
    if (this.#isSessionSet) this.#query.handleDataRow(message)
  }

  handleCommandComplete(message: unknown, connection: unknown) {
    if (this.#isSessionSet) this.#query.handleCommandComplete(message, connection)
    this.#isSessionSet = true
  }

  handlePortalSuspended(connection: unknown) {
    this.#query.handlePortalSuspended(connection)
  }

  handleEmptyQuery(connection: unknown) {
    this.#query.handleEmptyQuery(connection)
  }

  handleError(error: unknown, connection: unknown) {
    this.#query.handleError(error, connection)
  }

  handleReadyForQuery(connection: unknown) {
    this.#query.handleReadyForQuery(connection)
  }

  handleCopyInResponse(connection: unknown) {
    this.#query.handleCopyInResponse(connection)
  }

  handleCopyData(message: unknown, connection: unknown) {
    this.#query.handleCopyData(message, connection)
  }
}
