/** @jsxImportSource preact */
/** The reference of the API, rendered from this server's OpenAPI description. */
import { createPortal } from "preact/compat"
import { useEffect, useState } from "preact/hooks"
import { type Description, type Endpoint, operationsByTag } from "./Description.ts"
import { inlineCode } from "./inlineCode.tsx"
import { Fields } from "./Fields.tsx"
import { TryRequest } from "./TryRequest.tsx"

const load = async (): Promise<Description> => {
  const answer = await fetch("/openapi.json")
  if (!answer.ok) throw new Error(`/openapi.json answered ${answer.status}.`)
  return answer.json()
}

const Example = ({ name, value }: { readonly name: string; readonly value: unknown }) =>
  value === undefined ? null : (
    <pre tabIndex={0} aria-label={name}>
      <code>{typeof value === "string" ? value : JSON.stringify(value, null, 2)}</code>
    </pre>
  )

const OperationView = ({
  apiKey,
  base,
  description,
  operation
}: {
  readonly apiKey: string
  readonly base: string
  readonly description: Description
  readonly operation: Endpoint
}) => {
  const { method, operationId, parameters = [], path, requestBody, responses, summary } = operation
  return (
    <section class="operation" id={operationId} aria-labelledby={`${operationId}-name`}>
      <h3 id={`${operationId}-name`}>{summary ?? operationId}</h3>
      <p class="place">
        <span class="method">{method}</span> <code>{path}</code>
      </p>
      {operation.description === undefined ? null : <p>{inlineCode(operation.description)}</p>}
      {parameters.length === 0 ? null : (
        <>
          <h4>Parameters</h4>
          <ul class="fields">
            {parameters.map((parameter) => (
              <li key={`${parameter.in} ${parameter.name}`}>
                <code>{parameter.name}</code> <span class="soft">in the {parameter.in}</span>{" "}
                {parameter.required === true ? <span class="required">required</span> : null}
                {parameter.description === undefined ? null : <div>{inlineCode(parameter.description)}</div>}
              </li>
            ))}
          </ul>
        </>
      )}
      {Object.entries(requestBody?.content ?? {}).map(([type, { example, schema }]) => (
        <div key={type}>
          <h4>
            Body <span class="soft">{type}</span>
          </h4>
          {schema === undefined ? null : <Fields description={description} node={schema} />}
          <Example name={`A body of ${operationId}`} value={example} />
        </div>
      ))}
      <h4>Answers</h4>
      {Object.entries(responses).map(([status, { content = {}, description: meaning }]) => (
        <details key={status}>
          <summary>
            <code>{status}</code> <span class="soft">{meaning}</span>
          </summary>
          {Object.entries(content).map(([type, { example, schema }]) => (
            <div key={type}>
              <p class="soft">{type}</p>
              {schema === undefined ? null : <Fields description={description} node={schema} />}
              <Example name={`An answer ${status} of ${operationId}`} value={example} />
            </div>
          ))}
        </details>
      ))}
      <TryRequest apiKey={apiKey} base={base} operation={operation} />
    </section>
  )
}

/** The table of contents is rendered into the element `contents`. */
export const Reference = ({ contents }: { readonly contents: HTMLElement }) => {
  const [description, setDescription] = useState<Description | null>(null)
  const [failed, setFailed] = useState(false)
  const [apiKey, setApiKey] = useState("")
  useEffect(() => {
    load().then(setDescription, () => setFailed(true))
  }, [])
  useEffect(() => {
    // The element of the hash did not exist when the page was loaded.
    if (description !== null) document.getElementById(location.hash.slice(1))?.scrollIntoView()
  }, [description])

  if (failed) return <p role="alert">The description could not be loaded. Reload the page to try again.</p>
  if (description === null) return <p role="status">Loading …</p>
  const groups = operationsByTag(description)
  // The page's content security policy allows requests to this server only.
  const base = location.origin
  return (
    <>
      <p>
        Requests with <code>x-api-key</code>, answers in JSON.{" "}
        <a href="/docs/guide/authentication">Authentication</a> and <a href="/docs/guide/errors">errors</a>{" "}
        are the same everywhere. The description for programs is <a href="/openapi.json">/openapi.json</a>.
      </p>
      <label>
        API key, for requests that you send from this page
        <input
          type="password"
          autocomplete="off"
          value={apiKey}
          onInput={(event) => setApiKey(event.currentTarget.value.trim())}
        />
      </label>
      {groups.map(([tag, operations]) => (
        <div key={tag}>
          <h2 id={`tag-${tag}`}>{tag}</h2>
          {operations.map((operation) => (
            <OperationView
              key={operation.operationId}
              apiKey={apiKey}
              base={base}
              description={description}
              operation={operation}
            />
          ))}
        </div>
      ))}
      {createPortal(
        <ul>
          {groups.flatMap(([, operations]) =>
            operations.map(({ method, operationId, summary }) => (
              <li key={operationId}>
                <a href={`#${operationId}`} title={summary}>
                  <span class="soft">{method}</span> {operationId}
                </a>
              </li>
            ))
          )}
        </ul>,
        contents
      )}
    </>
  )
}
