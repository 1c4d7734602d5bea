/** @jsxImportSource preact */
/** The search field of the documentation. The index is loaded when the field is first used. */
import { useEffect, useRef, useState } from "preact/hooks"
import { findSections, type Section } from "./findSections.ts"

const previewLength = 120

const load = async (): Promise<ReadonlyArray<Section>> => {
  const answer = await fetch("/docs/search.json")
  if (!answer.ok) throw new Error(`The search answered ${answer.status}.`)
  return answer.json()
}

export const Search = () => {
  const [sections, setSections] = useState<ReadonlyArray<Section> | null>(null)
  const [failed, setFailed] = useState(false)
  const [query, setQuery] = useState("")
  const field = useRef<HTMLInputElement>(null)
  const list = useRef<HTMLUListElement>(null)

  const isRequested = useRef(false)
  /** Loads the index once. After a failure, the next keystroke tries again. */
  const loadIndex = () => {
    if (isRequested.current) return
    isRequested.current = true
    setFailed(false)
    load().then(setSections, () => {
      isRequested.current = false
      setFailed(true)
    })
  }
  useEffect(() => {
    const focusOnSlash = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof Element && event.target.closest("input, textarea") !== null
      if (event.key !== "/" || isTyping) return
      event.preventDefault()
      field.current?.focus()
    }
    document.addEventListener("keydown", focusOnSlash)
    return () => document.removeEventListener("keydown", focusOnSlash)
  }, [])

  const results = sections === null ? [] : findSections(sections, query)
  const isOpen = query.trim() !== ""
  const statusText = failed
    ? "The search could not be loaded. Type again to retry."
    : sections === null
      ? "Loading …"
      : results.length === 0
        ? "Nothing found. Try fewer words."
        : ""

  /** Moves the focus between the field and the results. */
  const moveFocus = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      setQuery("")
      field.current?.focus()
      return
    }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return
    event.preventDefault()
    const elements = [field.current, ...(list.current?.querySelectorAll("a") ?? [])]
    const current = elements.findIndex((element) => element === document.activeElement)
    elements[current + (event.key === "ArrowDown" ? 1 : -1)]?.focus()
  }

  return (
    <div onKeyDown={moveFocus} role="search">
      <input
        ref={field}
        type="search"
        aria-label="Search the documentation"
        placeholder="Search the documentation ( / )"
        value={query}
        onFocus={loadIndex}
        onInput={(event) => {
          loadIndex()
          setQuery(event.currentTarget.value)
        }}
      />
      <div role="status" hidden={!isOpen || statusText === ""} class="results">
        {isOpen ? statusText : ""}
      </div>
      {isOpen && results.length > 0 ? (
        <ul ref={list} class="results" aria-label="Results">
          {results.map(({ heading, href, page, text }) => (
            <li key={href}>
              <a href={href} onClick={() => setQuery("")}>
                {heading}
                <small>
                  {page} · {text.slice(0, previewLength)}
                </small>
              </a>
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  )
}
