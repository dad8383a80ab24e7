/* To so many bytes additions with carry win over vectors, whose lanes must be brought together in the end. */
#ifndef WHERRY_CSUM_SHORT_H
#define WHERRY_CSUM_SHORT_H

#define CSUM_SHORT 127

#endif
