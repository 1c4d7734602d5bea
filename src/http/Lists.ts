/** Lists of the signed-in user's tenant, page by page. */
import * as Effect from "effect/Effect"
import * as Record from "effect/Record"
import type { SessionUser } from "../domain/accounts/Access.ts"
import { CurrentUser } from "./Auth.ts"
import * as Cursor from "./Cursor.ts"

/** The page after the row `after`, or the first one. */
interface PageRequest {
  readonly limit: number
  readonly after: string | undefined
}

/** A page under `name`, with the cursor of the next one. By default it has 20 rows. */
export const listPage = <Name extends string, A, E, R>(
  name: Name,
  list: Omit<Cursor.List, "scope">,
  { cursor, limit = 20 }: { readonly cursor?: string; readonly limit?: number },
  read: (
    user: SessionUser,
    page: PageRequest
  ) => Effect.Effect<{ readonly rows: ReadonlyArray<A>; readonly next: string | number | null }, E, R>
) =>
  Effect.gen(function* () {
    const user = yield* CurrentUser
    const scopedList = { ...list, scope: user.tenantId }
    const { nextCursor, rows } = yield* Cursor.page(scopedList, cursor, (after) =>
      read(user, { limit, after })
    )
    return { ...Record.singleton(name, rows), nextCursor }
  })
