/** The frame of a page, its sections, its empty state and its loading state. */
import { ChevronLeft } from "lucide-react"
import { type ReactNode, useEffect, useId, useRef } from "react"
import { Link } from "wouter"
import { commonTexts } from "../text/commonTexts.ts"
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
  /** Page and heading of the documentation, linked after `lead`. */
  readonly guide?: string
  readonly actions?: ReactNode
  /** Address and name of the parent page. Users chose the name. */
  readonly parent?: readonly [string, string]
  /** The name of the agent of the page, shown on phones only. Elsewhere the navigation shows it. */
  readonly above?: string
  /** The title of the window; `title` by default. */
  readonly windowTitle?: string
  /** Limits the width to a readable one, for forms and texts. */
  readonly narrow?: boolean
  readonly children: ReactNode
}

/** True until a page was shown. The first page leaves the focus to the browser. */
let isFirst = true

/** Moves the focus to a new page if the pressed link no longer exists, or is in the navigation. */
export const usePageFocus = () => {
  const main = useRef<HTMLElement>(null)
  useEffect(() => {
    const { activeElement, body } = document
    const hasLostFocus =
      activeElement === null || activeElement === body || activeElement.closest("nav") !== null
    if (!isFirst && hasLostFocus) main.current?.focus({ preventScroll: true })
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
  const main = usePageFocus()
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
          <h1 id={heading}>
            <bdi>{title}</bdi>
          </h1>
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
  /** Page and heading of the documentation. */
  readonly guide?: string
  readonly actions?: ReactNode
  /** Shows the title beside the content if there is room, for forms. */
  readonly beside?: boolean
  /** Adds a frame, for sections beside others such as charts. */
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
              <div>
                <h2>{title}</h2>
                {lead === undefined ? link : null}
              </div>
              {lead === undefined ? null : (
                <p>
                  {lead} {link}
                </p>
              )}
            </div>
            {actions === undefined ? null : <span className={css["actions"]}>{actions}</span>}
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
  readonly lead: ReactNode
  readonly action?: ReactNode
}

/** The empty state of a list, with a button for the next step. */
export const Empty = ({ title, lead, action }: EmptyProps) => (
  <div className={css["empty"]}>
    <h2>{title}</h2>
    <p>{lead}</p>
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
export const LoadError = ({ query }: { readonly query: LoadedProps<unknown>["query"] }) => {
  const t = useText(commonTexts)
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

/** Shown while the code of a page is being loaded. */
export const PageSkeleton = () => (
  <main className={css["page"]} id="content" tabIndex={-1}>
    <Skeleton rows={3} title />
  </main>
)

/** Renders the data of a query; before that, a placeholder or the error. */
export const Loaded = <A,>({ query, children }: LoadedProps<A>) => {
  if (query.data !== undefined) return children(query.data)
  if (query.isPending) return <Skeleton rows={3} />
  return <LoadError query={query} />
}
