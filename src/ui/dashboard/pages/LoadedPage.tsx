/** A page about one resource: its content, or that it does not exist, or the error. */
import type { ReactNode } from "react"
import { isUnknownId } from "../api/Client.ts"
import { type LoadedProps, LoadError, Page, PageSkeleton } from "../components/Page.tsx"
import { commonTexts } from "../text/commonTexts.ts"
import { useText } from "../text/Language.tsx"
import { NotFound, type NotFoundProps } from "./NotFound.tsx"

type Props<A> = LoadedProps<A> & Required<NotFoundProps>

export const LoadedPage = <A,>({ back, children, query, what }: Props<A>): ReactNode => {
  const t = useText(commonTexts)
  if (query.data !== undefined) return children(query.data)
  if (query.isPending) return <PageSkeleton />
  if (isUnknownId(query.error)) return <NotFound what={what} back={back} />
  return (
    <Page title={t.failed}>
      <LoadError query={query} />
    </Page>
  )
}
