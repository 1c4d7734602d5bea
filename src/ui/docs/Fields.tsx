/** @jsxImportSource preact */
/** The members of a schema, nested as far as one opens them. */
import { useState } from "preact/hooks"
import { coded } from "./coded.tsx"
import { boundsOf, type Description, resolved, type SchemaNode, typeOf } from "./Description.ts"

interface Props {
  readonly description: Description
  readonly node: SchemaNode
}

/** The schemas that have the members of `node`: itself, the items of a list, or its choices. */
const parts = (description: Description, node: SchemaNode): ReadonlyArray<SchemaNode> => {
  const whole = resolved(description, node)
  const choices = whole.anyOf ?? whole.oneOf
  if (choices !== undefined) return choices.flatMap((one) => parts(description, one))
  if (whole.items !== undefined) return parts(description, whole.items)
  return whole.properties === undefined ? [] : [whole]
}

const Nested = ({ description, node }: Props) => {
  const [isOpen, setOpen] = useState(false)
  if (parts(description, node).length === 0) return null
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="soft">Members</summary>
      {isOpen ? <Fields description={description} node={node} /> : null}
    </details>
  )
}

export const Fields = ({ description, node }: Props) => (
  <>
    {parts(description, node).map(({ properties = {}, required = [] }, place) => (
      <ul class="fields" key={place}>
        {Object.entries(properties).map(([name, member]) => {
          const whole = resolved(description, member)
          const about = member.description ?? whole.description
          return (
            <li key={name}>
              <code>{name}</code> <span class="soft">{typeOf(member)}</span>{" "}
              {required.includes(name) ? <span class="required">required</span> : null}{" "}
              <span class="soft">{boundsOf(whole)}</span>
              {about === undefined ? null : <div>{coded(about)}</div>}
              <Nested description={description} node={member} />
            </li>
          )
        })}
      </ul>
    ))}
  </>
)
