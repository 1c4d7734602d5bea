/** SCIM responses: resources, lists, errors, and the description of the service. */
import * as DateTime from "effect/DateTime"

type Resource = Readonly<Record<string, unknown>>
/** Description of a kind of resource, or of its attributes. */
export type Description = Resource & { readonly id: string }

const schemas = "urn:ietf:params:scim:schemas:core:2.0"
const messages = "urn:ietf:params:scim:api:messages:2.0"

interface Person {
  readonly id: string
  readonly userName: string
  readonly externalId: string | null
  readonly active: boolean
  readonly role: string
  readonly groups: ReadonlyArray<{ readonly id: string; readonly name: string }>
  readonly createdAt: DateTime.Utc
}

interface Group {
  readonly id: string
  readonly name: string
  readonly externalId: string | null
  readonly members: ReadonlyArray<{ readonly id: string; readonly userName: string }>
  readonly createdAt: DateTime.Utc
}

const metaOf = (base: string, resourceType: "User" | "Group", id: string, createdAt: DateTime.Utc) => ({
  resourceType,
  created: DateTime.formatIso(createdAt),
  location: `${base}/${resourceType}s/${id}`
})
const externalIdField = (externalId: string | null) => (externalId === null ? {} : { externalId })

export const personResource = (base: string, person: Person): Resource => ({
  schemas: [`${schemas}:User`],
  id: person.id,
  ...externalIdField(person.externalId),
  userName: person.userName,
  displayName: person.userName,
  emails: [{ value: person.userName, type: "work", primary: true }],
  active: person.active,
  roles: [{ value: person.role, primary: true }],
  groups: person.groups.map(({ id, name }) => ({ value: id, display: name })),
  meta: metaOf(base, "User", person.id, person.createdAt)
})

export const groupResource = (base: string, group: Group, withMembers: boolean): Resource => ({
  schemas: [`${schemas}:Group`],
  id: group.id,
  ...externalIdField(group.externalId),
  displayName: group.name,
  ...(withMembers
    ? { members: group.members.map(({ id, userName }) => ({ value: id, display: userName })) }
    : {}),
  meta: metaOf(base, "Group", group.id, group.createdAt)
})

export const list = (
  resources: ReadonlyArray<Resource>,
  totalResults: number,
  startIndex: number
): Resource => ({
  schemas: [`${messages}:ListResponse`],
  totalResults,
  startIndex,
  itemsPerPage: resources.length,
  Resources: resources
})

/** Maximum resources of a page. */
export const maxPage = 100

export const serviceProviderConfig = (base: string): Resource => ({
  schemas: [`${schemas}:ServiceProviderConfig`],
  patch: { supported: true },
  bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
  filter: { supported: true, maxResults: maxPage },
  changePassword: { supported: false },
  sort: { supported: false },
  etag: { supported: false },
  authenticationSchemes: [
    {
      type: "oauthbearertoken",
      name: "Bearer token",
      description: "The token of the tenant, made in the dashboard.",
      primary: true
    }
  ],
  meta: { resourceType: "ServiceProviderConfig", location: `${base}/ServiceProviderConfig` }
})

const resourceType = (base: string, name: "User" | "Group"): Description => ({
  schemas: [`${schemas}:ResourceType`],
  id: name,
  name,
  endpoint: `/${name}s`,
  schema: `${schemas}:${name}`,
  meta: { resourceType: "ResourceType", location: `${base}/ResourceTypes/${name}` }
})
export const resourceTypes = (base: string) => [resourceType(base, "User"), resourceType(base, "Group")]

const attribute = (name: string, changes: Resource = {}): Resource => ({
  name,
  type: "string",
  multiValued: false,
  description: name,
  required: false,
  caseExact: false,
  mutability: "readWrite",
  returned: "default",
  uniqueness: "none",
  ...changes
})
const complexAttribute = (...names: ReadonlyArray<string>) => ({
  type: "complex",
  multiValued: true,
  subAttributes: names.map((name) => attribute(name))
})
const readOnly = { mutability: "readOnly" }

const schema = (base: string, name: "User" | "Group", attributes: ReadonlyArray<Resource>): Description => ({
  schemas: [`${schemas}:Schema`],
  id: `${schemas}:${name}`,
  name,
  description: name,
  attributes,
  meta: { resourceType: "Schema", location: `${base}/Schemas/${schemas}:${name}` }
})

export const schemaList = (base: string) => [
  schema(base, "User", [
    attribute("userName", { required: true, mutability: "immutable", uniqueness: "server" }),
    attribute("externalId", { caseExact: true }),
    attribute("active", { type: "boolean" }),
    attribute("displayName", readOnly),
    attribute("emails", { ...complexAttribute("value", "type"), ...readOnly }),
    attribute("roles", { ...complexAttribute("value"), ...readOnly }),
    attribute("groups", { ...complexAttribute("value", "display"), ...readOnly })
  ]),
  schema(base, "Group", [
    attribute("displayName", { required: true, uniqueness: "server" }),
    attribute("externalId", { caseExact: true }),
    attribute("members", complexAttribute("value", "display"))
  ])
]
