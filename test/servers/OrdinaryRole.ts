/** A database as production has it: its owner is nobody special, and an administrator has made the role of tenants. */
import * as Pg from "pg"
import { freshDatabase } from "../e2e/Fleet.ts"

const run = async (address: string, ...texts: ReadonlyArray<string>) => {
  const client = new Pg.Client({ connectionString: address })
  await client.connect()
  for (const text of texts) await client.query(text)
  await client.end()
}

/** A database of an ordinary role, which may make neither roles nor databases, and the role of tenants that it was given. */
export const ordinary = async () => {
  const target = await freshDatabase()
  const name = new URL(target).pathname.slice(1)
  const [owner, role] = [`owner_${name}`, `tenants_${name}`]
  await run(
    target,
    `create role ${owner} login`,
    `create role ${role} nologin`,
    `grant ${role} to ${owner}`,
    `alter database ${name} owner to ${owner}`,
    `alter schema public owner to ${owner}`
  )
  const url = new URL(target)
  url.username = owner
  return { url: url.href, role, owner, admin: target }
}
