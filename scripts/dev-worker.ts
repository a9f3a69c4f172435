import service from '../src/index.ts';
import { withBucketAccess } from './dev-bucket.ts';

/** What `npm run dev` starts: the service as it is, and its bucket for the S3 gateway. Never deployed. */
export * from '../src/index.ts';
export default withBucketAccess(service, 'LAKE');
