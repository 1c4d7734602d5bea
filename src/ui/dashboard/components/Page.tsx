/** The frame of a page, its sections, its empty state and its loading state. */
import { ChevronLeft } from "lucide-react"
import { type ReactNode, useEffect, useId, useRef } from "react"
import { Link } from "wouter"
import { everywhere } from "../text/everywhere.ts"
import { useText } from "../text/Language.tsx"
import { Button } from "./Button.tsx"
import { GuideLink } from "../text/GuideLink.tsx"
import { Skeleton } from "./feedback/Skeleton.tsx"
import { KeptDrafts } from "../forms/DraftNotes.tsx"
import { Problem } from "./Problem.tsx"
import css from "./Page.module.css"
import { setPageName } from "../window/windowTitle.ts"

interface PageProps {
  readonly title: string
  readonly lead?: ReactNode
  /** Page and heading of the documentation about it; shown after `lead`. */
  readonly guide?: string
  readonly actions?: ReactNode
  /** Where it belongs to: its address and its name, which people chose. */
  readonly parent?: readonly [string, string]
  /** The name of what it is a part of, on a phone: elsewhere the navigation says it. */
  readonly above?: string
  /** The title of the window; `title` by default. */
  readonly windowTitle?: string
  /** For forms and texts: no wider than they read well. */
  readonly narrow?: boolean
  readonly children: ReactNode
}

/** True until a page has been shown: the first page starts at the top of the window. */
let isFirst = true

/**
 * Moves the focus to the beginning of a new page if the link that led here no longer exists, or is in the navigation.
 */
export const useArrival = () => {
  const main = useRef<HTMLElement>(null)
  useEffect(() => {
    const { activeElement, body } = document
    const left = activeElement === null || activeElement === body || activeElement.closest("nav") !== null
    if (!isFirst && left) main.current?.focus({ preventScroll: true })
    isFirst = false
  }, [])
  return main
}

export const Page = ({
  title,
  lead,
  guide,
  actions,
  parent,
  above,
  windowTitle = title,
  narrow = false,
  children
}: PageProps) => {
  const main = useArrival()
  const heading = useId()
  useEffect(() => {
    setPageName(windowTitle)
  }, [windowTitle])
  return (
    <main
      ref={main}
      className={`${css["page"]} ${narrow ? css["narrow"] : ""}`}
      id="content"
      tabIndex={-1}
      aria-labelledby={heading}
    >
      <header className={css["header"]}>
        <div className={css["title"]}>
          {parent === undefined ? null : (
            <Link href={parent[0]} className={css["parent"] ?? ""} lang="">
              <ChevronLeft aria-hidden size={14} />
              {parent[1]}
            </Link>
          )}
          {above === undefined ? null : (
            <p className={css["above"]} lang="">
              {above}
            </p>
          )}
          <h1 id={heading}>{title}</h1>
          {lead === undefined ? null : (
            <p className={css["lead"]}>
              {lead} {guide === undefined ? null : <GuideLink guide={guide} />}
            </p>
          )}
        </div>
        {actions === undefined ? null : <div className={css["actions"]}>{actions}</div>}
      </header>
      <KeptDrafts />
      {children}
    </main>
  )
}

interface SectionProps {
  readonly title?: string
  /** A sentence below the title. */
  readonly lead?: string
  /** Page and heading of the documentation about it. */
  readonly guide?: string
  readonly actions?: ReactNode
  /** The title stands beside what belongs to it, where there is room: for forms. */
  readonly beside?: boolean
  /** With a frame of its own: for what stands beside others, such as charts. */
  readonly framed?: boolean
  readonly children: ReactNode
}

export const Section = ({
  title,
  lead,
  guide,
  actions,
  beside = false,
  framed = false,
  children
}: SectionProps) => {
  const link = guide === undefined || title === undefined ? null : <GuideLink guide={guide} about={title} />
  return (
    <section
      className={css[framed ? "card" : "section"]}
      {...(title === undefined ? {} : { "aria-label": title })}
    >
      <div className={`${css["inside"]} ${beside ? css["beside"] : ""}`}>
        {title === undefined && actions === undefined ? null : (
          <header className={css["sectionHeader"]}>
            <div className={css["titles"]}>
              <h2>{title}</h2>
              {lead === undefined ? null : (
                <p>
                  {lead} {link}
                </p>
              )}
            </div>
            <span className={css["actions"]}>
              {lead === undefined ? link : null}
              {actions}
            </span>
          </header>
        )}
        <div className={css["body"]}>{children}</div>
      </div>
    </section>
  )
}

/** A section with a frame. */
export const Card = (props: Omit<SectionProps, "framed">) => <Section {...props} framed />

interface EmptyProps {
  readonly title: string
  readonly children: ReactNode
  readonly action?: ReactNode
}

/** The empty state of a list, with the next step. */
export const Empty = ({ title, children, action }: EmptyProps) => (
  <div className={css["empty"]}>
    <h2>{title}</h2>
    <p>{children}</p>
    {action === undefined || action === null ? null : <div className={css["emptyAction"]}>{action}</div>}
  </div>
)

export interface LoadedProps<A> {
  readonly query: {
    readonly data: A | undefined
    readonly error: unknown
    readonly isPending: boolean
    readonly isFetching: boolean
    readonly refetch: () => Promise<unknown>
  }
  readonly children: (data: A) => ReactNode
}

/** The error of a query, with a retry button. */
export const Unloaded = ({ query }: { readonly query: LoadedProps<unknown>["query"] }) => {
  const t = useText(everywhere)
  return (
    <>
      <Problem problem={query.error} />
      <div>
        <Button busy={query.isFetching} onClick={() => void query.refetch()}>
          {t.retry}
        </Button>
      </div>
    </>
  )
}

/** In place of a page whose code is being loaded. */
export const PageSkeleton = () => (
  <main className={css["page"]} id="content" tabIndex={-1}>
    <Skeleton rows={3} title />
  </main>
)

/** The data of a query. Until it has loaded, a loading state or the error. */
export const Loaded = <A,>({ query, children }: LoadedProps<A>) => {
  if (query.data !== undefined) return children(query.data)
  if (query.isPending) return <Skeleton rows={3} />
  return <Unloaded query={query} />
}
