import type { Static, TSchema } from '@sinclair/typebox'
import { address, type Id } from '../../api/address.js'
import type { ApiCaller, CallOptions } from '../../api/caller.js'
import { formOf, type Progress } from '../../api/upload.js'
import { checkBody } from './check-body.js'

export interface UploadOptions extends CallOptions {
  readonly onProgress?: (progress: Progress) => void
  /** The form field's name for a single file. */
  readonly field?: string
}

// The types of calls. `Result` is the response type that the caller expects from the backend; it is not validated.
export type Read = <Result = unknown>(options?: CallOptions) => Promise<Result>
export type ReadOne = <Result = unknown>(id: Id, options?: CallOptions) => Promise<Result>
export type Send<Body> = <Result = unknown>(body: Body, options?: CallOptions) => Promise<Result>
export type SendTo<Body> = <Result = unknown>(id: Id, body: Body, options?: CallOptions) => Promise<Result>
/** Calls with an optional body. */
export type SendMaybe<Body> = <Result = unknown>(body?: Body, options?: CallOptions) => Promise<Result>
export type SendToMaybe<Body> = <Result = unknown>(id: Id, body?: Body, options?: CallOptions) => Promise<Result>
export type Upload = <Result = unknown>(content: Blob | FormData, options?: UploadOptions) => Promise<Result>
export type UploadTo = <Result = unknown>(id: Id, content: Blob | FormData, options?: UploadOptions) => Promise<Result>
/** Resolves to the file of the response. */
export type Download = (options?: CallOptions) => Promise<File>

export type WriteMethod = 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Creates calls from route declarations. */
export interface Calls {
  read(path: string): Read
  readOne(path: string): ReadOne
  send<Schema extends TSchema>(method: WriteMethod, path: string, schema: Schema): Send<Static<Schema>>
  sendTo<Schema extends TSchema>(method: WriteMethod, path: string, schema: Schema): SendTo<Static<Schema>>
  sendMaybe<Schema extends TSchema>(method: WriteMethod, path: string, schema: Schema): SendMaybe<Static<Schema>>
  sendToMaybe<Schema extends TSchema>(method: WriteMethod, path: string, schema: Schema): SendToMaybe<Static<Schema>>
  upload(path: string): Upload
  uploadTo(path: string): UploadTo
  download(path: string): Download
}

export const buildCalls = (call: ApiCaller): Calls => {
  const send = async <Result>(
    { method, path, schema }: { readonly method: WriteMethod; readonly path: string; readonly schema: TSchema },
    body: unknown,
    options?: CallOptions
  ): Promise<Result> => call(method, path, { ...options, body: checkBody(schema, body) })
  const sendMaybe = async <Result>(
    method: WriteMethod,
    path: string,
    schema: TSchema,
    body: unknown,
    options?: CallOptions
  ): Promise<Result> =>
    body === undefined ? call(method, path, options) : send({ method, path, schema }, body, options)
  const upload = async <Result>(
    path: string,
    content: Blob | FormData,
    { field, ...options }: UploadOptions = {}
  ): Promise<Result> => call('POST', path, { ...options, body: formOf(content, field) })

  return {
    read: (path) => (options) => call('GET', path, options),
    readOne: (path) => async (id, options) => call('GET', address(path, id), options),
    send: (method, path, schema) => (body, options) => send({ method, path, schema }, body, options),
    sendTo: (method, path, schema) => async (id, body, options) =>
      send({ method, path: address(path, id), schema }, body, options),
    sendMaybe: (method, path, schema) => (body, options) => sendMaybe(method, path, schema, body, options),
    sendToMaybe: (method, path, schema) => async (id, body, options) =>
      sendMaybe(method, address(path, id), schema, body, options),
    upload: (path) => (content, options) => upload(path, content, options),
    uploadTo: (path) => async (id, content, options) => upload(address(path, id), content, options),
    download: (path) => (options) => call('GET', path, { ...options, as: 'file' })
  }
}
